"""Stages and passes as text: printed, collected, written to files."""
