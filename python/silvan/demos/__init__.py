"""Demonstrations that run by themselves, with real programs on an emulated fabric."""
