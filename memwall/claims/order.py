"""The order in which claims are worked out: what a claim rests on comes first.

So a chain of many claims needs no deep stack.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from memwall.claims.claim import Claim
from memwall.errors import FileError, shown


def in_order(claim: Claim, done: Container[str], below: Callable[[Claim], list[Claim]]) -> list[Claim]:
    """The claim behind all that it rests on.

    Args:
        claim: the claim.
        done: the keys of those that are worked out already.
        below: what a claim rests on directly.

    Raises:
        FileError: the claims form a circle.
    """
    order: list[Claim] = []
    path: dict[str, Claim] = {claim.key: claim}
    seen = {claim.key}
    open_: list[tuple[Claim, Iterator[Claim]]] = [(claim, iter(below(claim)))]
    while open_:
        here, rest = open_[-1]
        following = next(rest, None)
        if following is None:
            open_.pop()
            path.pop(here.key)
            order.append(here)
        elif following.key in path:
            ids = [each.id for each in path.values()]
            raise circle(here, [*ids[list(path).index(following.key) :], following.id])
        elif following.key not in seen and following.key not in done:
            seen.add(following.key)
            path[following.key] = following
            open_.append((following, iter(below(following))))
    return order


def circle(claim: Claim, ids: list[str]) -> FileError:
    """The error that claims depend on each other in a circle."""
    return FileError(
        f"{claim.place}: the claims depend on each other in a circle: {shown(' -> '.join(ids), 120)}",
        "Compute one of them from something else",
    )
