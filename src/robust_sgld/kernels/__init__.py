"""Compiled inner loops (numba). Nothing here checks its input: the callers have."""
