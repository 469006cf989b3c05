"""Pages of `memwall report` as a browser has them."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from memwall.cli import run

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


class Page(HTMLParser):
    """What a page shows: values by key, kernels, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.kernels: dict[str, float] = {}
        self.exchanges: dict[str, float] = {}
        self.estimates: dict[str, float] = {}
        self.loads: list[str] = []
        self.command = ""
        self.within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: text or "" for name, text in attrs}
        self.within = given.get("id", "")
        if "data-key" in given:
            self.values[given["data-key"]] = given.get("data-value", "")
        if "data-kernel" in given:
            self.kernels[given["data-kernel"]] = float(given["data-value"])
        if "data-exchange" in given:
            self.exchanges[given["data-exchange"]] = float(given["data-value"])
        name = given.get("data-kernel") or given.get("data-exchange")
        if name and given["data-estimate"]:
            self.estimates[name] = float(given["data-estimate"])
        self.loads += [given[name] for name in ("src", "href") if name in given]

    def handle_data(self, data: str) -> None:
        if self.within == "command":
            self.command += data

    def handle_endtag(self, tag: str) -> None:
        self.within = ""


def dumped(path: Path, place: str = "") -> str:
    """A page's elements once its scripts have run; nothing may be on the console."""
    assert BROWSER
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += ["--virtual-time-budget=2000", "--dump-dom", f"{path.as_uri()}#{place}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert done.stdout
    return done.stdout


def browse(path: Path, place: str) -> Page:
    """The page as a browser has it."""
    return Page(dumped(path, place))


def play(path: Path, script: str, place: str = "") -> Any:
    """What a script returns in the page, with `fire` for events of mouse and keyboard."""
    played = path.with_suffix(".played.html")
    helper = """const fire = (id, value, event) => {
      const e = document.getElementById(id); e.value = value; e.dispatchEvent(new Event(event));
    };"""
    added = f"<script>{helper}document.title = JSON.stringify((() => {{{script}}})());</script>"
    before, end, after = path.read_text().rpartition("</body>")
    played.write_text(before + added + end + after)
    title = re.search(r"<title>(.*?)</title>", dumped(played, place), re.DOTALL)
    assert title
    return json.loads(html.unescape(title.group(1)))


def report(path: Path, args: str) -> Path:
    """The page of `memwall report` with such arguments."""
    assert run(["report", *args.split(), "-o", str(path)]) == 0
    return path
