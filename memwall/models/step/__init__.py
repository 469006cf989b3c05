"""A whole pass of a model, kernel by kernel: one file a kind of part, `whole` puts them together."""
