"""Loads and runs compiled models; needs numpy and ml_dtypes only."""
