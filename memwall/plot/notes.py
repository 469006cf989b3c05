"""What stands under a picture in words: what was changed, what was left out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memwall.plot.figure import Picture

MOST_REASONS = 3


def changed(picture: Picture, changes: Mapping[str, object]) -> Picture:
    """The picture of GPUs with what-ifs, which its title and its first note say."""
    if not changes:
        return picture
    made = ", ".join(f"{key} = {value}" for key, value in changes.items())
    return picture._replace(title=f"{picture.title}, what if", notes=(f"What if: {made}", *picture.notes))


def with_notes(picture: Picture, notes: Sequence[str]) -> Picture:
    """The picture with more notes, each once."""
    return picture._replace(notes=tuple(dict.fromkeys([*picture.notes, *notes])))


def left_out(reasons: Mapping[str, int]) -> list[str]:
    """How many rows are not in a picture, and the most frequent reasons; nothing if all are.

    >>> left_out({"of v100, which is not drawn": 2, "table.csv:7: m must be a whole number": 1})
    ['3 rows are left out: of v100, which is not drawn (2); table.csv:7: m must be a whole number']
    """
    if not reasons:
        return []
    total = sum(reasons.values())
    ranked = sorted(reasons.items(), key=lambda each: -each[1])
    said = [
        f"{reason.rstrip('.')} ({count})" if count > 1 and len(ranked) > 1 else reason
        for reason, count in ranked
    ]
    more = [f"and {len(said) - MOST_REASONS} other reasons"] if len(said) > MOST_REASONS else []
    rows = "1 row is" if total == 1 else f"{total:,} rows are"
    return [f"{rows} left out: {'; '.join([*said[:MOST_REASONS], *more])}"]


def beaten(names: Sequence[str], what: str) -> list[str]:
    """Runs that were faster than their bound, which a time, a shape or a clock must explain."""
    if not names:
        return []
    shown = ", ".join(names[:MOST_REASONS]) + (", ..." if len(names) > MOST_REASONS else "")
    is_are = f"1 {what} is" if len(names) == 1 else f"{len(names):,} {what}s are"
    return [
        f"{is_are} faster than the bound: {shown}. Is the time, the shape or the clock wrong, the data warm?"
    ]
