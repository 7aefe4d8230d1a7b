"""Scenarios and their parts: quantities, TOML text, graphs, programs, files that users name."""
