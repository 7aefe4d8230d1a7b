"""Tests of the browser page."""
