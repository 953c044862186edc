"""Rows of the operator benchmark, one file per section."""
