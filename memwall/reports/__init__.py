"""Answers as values: what was asked, what was assumed, the bound, and what it rests on."""
