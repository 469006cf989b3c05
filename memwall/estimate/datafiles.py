"""Shipped tables: found in a checkout, in the installed package, or inside a zip file."""

from __future__ import annotations

import os
from collections.abc import Iterator

from memwall.catalog import shipped


def shipped_tables(folder: str) -> Iterator[tuple[str, str]]:
    """Every shipped CSV file of a folder: its name and its text."""
    root = shipped(folder)
    if not isinstance(root, str):
        for item in sorted(root.iterdir(), key=lambda each: str(each.name)):
            if item.name.endswith(".csv"):
                yield item.name, item.read_text("utf-8")
        return
    for name in sorted(os.listdir(root)):
        if name.endswith(".csv"):
            with open(os.path.join(root, name), encoding="utf-8", newline="") as file:
                yield name, file.read()
