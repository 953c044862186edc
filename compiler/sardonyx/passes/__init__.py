"""Passes: one per file, from ONNX nodes to a program with a place for every tensor."""
