"""Figures, all in one style."""
