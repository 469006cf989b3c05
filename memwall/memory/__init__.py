"""What must be in memory at once: of a server, and of a training run."""
