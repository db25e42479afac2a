"""Thin stages around the library: the only importers of Hydra."""
