"""Sardonyx compiles ONNX models to native code for the host CPU."""
