"""Questions about a fabric before it is changed: routing engines, failures, a new leaf."""
