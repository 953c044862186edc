"""Profiles: where the time of a run goes, by kernel and by ONNX node."""
