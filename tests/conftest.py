"""Before any test imports numpy: its matrices are small here, and threads would only wait for each other."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
