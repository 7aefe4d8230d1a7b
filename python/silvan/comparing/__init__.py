"""Schemes and settings compared: comparison, arena, tuning."""
