"""Tests: the library held to the paper's equations."""
