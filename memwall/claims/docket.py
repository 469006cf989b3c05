"""All that one run of `memwall check` judges: files of claims and documents, and what they come to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from memwall.catalog import Entry, shipped
from memwall.claims.claim import VERDICTS, Claim, ClaimsFile
from memwall.claims.files import read_text
from memwall.claims.verdict import Court, Judged, followers
from memwall.errors import FileError

SHIPPED = "configs/claims"


class Docket(NamedTuple):
    """Claims, judged."""

    files: tuple[ClaimsFile, ...]
    court: Court
    judged: tuple[Judged, ...]
    """Those that were asked for, in the order of the files."""
    every: tuple[Judged, ...]
    """All of the files, whatever was asked for."""

    @property
    def changed(self) -> list[Judged]:
        """Those whose verdict is not the one recorded."""
        return [each for each in self.judged if not each.as_recorded]

    @property
    def fallen(self) -> list[Judged]:
        """Those that something speaks against."""
        return [each for each in self.judged if not each.stands]

    @property
    def followers(self) -> dict[str, list[Judged]]:
        """For each claim at which an error starts, what follows from it."""
        return followers(self.every)

    def of(self, verdicts: set[str]) -> Docket:
        """The same with the claims of some verdicts alone."""
        return self._replace(judged=tuple(each for each in self.judged if each.verdict in verdicts))

    def failing(self, strict: bool) -> list[Judged]:
        """What makes the run fail: a changed verdict; with `strict` anything that does not stand."""
        return [each for each in self.judged if not each.as_recorded or (strict and not each.stands)]


def judge(
    files: Sequence[ClaimsFile], load: Callable[[str], ClaimsFile], wanted: Callable[[Claim], bool]
) -> Docket:
    """Every claim of some files, judged.

    Args:
        files: the files of claims.
        load: reads another text's claims, when one is named.
        wanted: which of the claims are asked for.

    Raises:
        FileError: a fault in a claim, with file and line.
    """
    court = Court(files, load)
    every = tuple(court.judge(claim) for file in files for claim in file.claims)
    return Docket(tuple(files), court, tuple(each for each in every if wanted(each.claim)), every)


def judge_sound(
    files: Sequence[ClaimsFile], load: Callable[[str], ClaimsFile], wanted: Callable[[Claim], bool]
) -> tuple[Docket, list[FileError]]:
    """As `judge`, of the files that can be judged, and the faults of the others."""
    try:
        return judge(files, load, wanted), []
    except FileError:
        kept, faults = _sound(files, load)
        return judge(kept, load, wanted), faults


def _sound(
    files: Sequence[ClaimsFile], load: Callable[[str], ClaimsFile]
) -> tuple[list[ClaimsFile], list[FileError]]:
    """Files that can be judged, and the faults of the others, so that one does not hide the rest."""
    kept, faults = [], []
    for file in files:
        others = [each for each in files if each is not file]
        court = Court([file, *others], load)
        try:
            for claim in file.claims:
                court.judge(claim)
            kept.append(file)
        except FileError as fault:
            faults.append(fault)
    return kept, faults


def at(where: str) -> Callable[[Claim], bool]:
    """Whether a claim stands in a place: a section and those in it, a figure or table, or its id."""
    number = re.fullmatch(r"\d+(\.\d+)*", where.strip())
    words = re.escape(where.strip())
    pattern = rf"{words}(?![\d])(?!\w)" if number else rf"(?<!\w){words}(?!\w)"
    find = re.compile(pattern, re.IGNORECASE)

    def stands(claim: Claim) -> bool:
        if claim.id == where.strip():
            return True
        return bool(find.match(claim.where) if number else find.search(claim.where))

    return stands


def shipped_files() -> list[Entry]:
    """The claims that come with memwall."""
    folder = shipped(SHIPPED)
    names = os.listdir(folder) if isinstance(folder, str) else [item.name for item in folder.iterdir()]
    return [_entry(folder, name) for name in sorted(names) if name.endswith(".yaml")]


def shipped_file(path: str) -> Entry | None:
    """Shipped claims by their name, chapter4, or by their path where no such file lies."""
    name = path.removeprefix(f"{SHIPPED}/").removesuffix(".yaml")
    if os.path.exists(path) or os.sep in name:
        return None
    return next((entry for entry in shipped_files() if entry.name == name), None)


def _entry(folder: Any, name: str) -> Entry:
    if isinstance(folder, str):
        path = os.path.join(folder, name)
        near = os.path.relpath(path)
        return Entry(name[:-5], read_text(path), path if near.startswith(os.pardir) else near, user=False)
    return Entry(name[:-5], folder.joinpath(name).read_text("utf-8"), f"{SHIPPED}/{name}", user=False)


def counts(judged: Iterable[Judged]) -> dict[str, int]:
    """How many claims came to each verdict."""
    found = dict.fromkeys(VERDICTS, 0)
    for each in judged:
        found[each.verdict] += 1
    return found
