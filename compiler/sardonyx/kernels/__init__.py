"""Kernels: the loops of each kind of group, and what they share."""
