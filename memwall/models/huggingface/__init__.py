"""Hugging Face config.json files: which keys of each architecture the parts of its layers come from."""
