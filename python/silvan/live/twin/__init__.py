"""A twin: a scenario that behaves as a diagnosed subnet does."""
