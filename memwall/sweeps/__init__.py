"""Thousands of questions at once: ranges, the same formulas on arrays, and streams of rows to disk."""
