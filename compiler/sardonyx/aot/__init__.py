"""Ahead of time: from a model to files that run without Sardonyx (docs/ahead-of-time.md)."""
