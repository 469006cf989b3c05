"""A model on several GPUs: layouts, shards and what passes between them."""
