"""What holds for all tests, before any of them is imported."""

from __future__ import annotations

import os

from hypothesis import settings

# Matrices are small here, and threads would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same cases in every run, and no judgement of a busy machine's speed.
settings.register_profile("memwall", deadline=None, derandomize=True)
settings.load_profile("memwall")
