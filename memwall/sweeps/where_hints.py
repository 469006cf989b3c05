"""What a condition that cannot be read was meant to be: `m = 8 && bound_time_s < 10us` as it is typed."""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress

from memwall.errors import UsageError, shown
from memwall.units import SIZES, parse_seconds

EXAMPLE = "--where 'regime == \"compute-bound\"'"

_QUOTED = re.compile(r"""("[^"]*"|'[^']*')""")
_SIGNS = (
    (re.compile(r"<>"), "!="),
    (re.compile(r"=>"), ">="),
    (re.compile(r"=<"), "<="),
    (re.compile(r"(?<![=!<>])=(?![=<>])"), "=="),
    (re.compile(r"\s*(?:&&|\bAND\b|(?<!&)&(?!&))\s*"), " and "),
    (re.compile(r"\s*(?:\|\||\bOR\b|(?<!\|)\|(?!\|))\s*"), " or "),
    (re.compile(r"\bNOT\b\s*|!(?!=)\s*"), "not "),
)
_QUANTITY = re.compile(
    r"(?<![\w.])(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s?(?:(ns|us|ms|s)|([kKMGTP]?i?)(?:B|FLOPS?)(?:/s)?)(?!\w)"
)
_WORD = re.compile(r"(?P<left>[\w.]+)(?P<sign>\s*[=!]=\s*)(?P<right>[A-Za-z][\w.-]*)")


def parsed(text: str) -> ast.expr | None:
    """A condition as Python reads it; None if it cannot be read."""
    try:
        with warnings.catch_warnings():  # of 1and, which is refused or read all the same
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def hint(text: str, columns: Collection[str], texts: Mapping[str, Collection[str]]) -> str | None:
    """The condition that was meant, to type.

    Args:
        text: what was typed.
        columns: those that there are.
        texts: those of them that hold texts.

    >>> print(hint("m = 8 && regime == memory-bound", ["m", "regime"], {"regime": ()}))
    Did you mean --where 'm == 8 and regime == "memory-bound"'?
    """
    parts = _QUOTED.split(text)
    mended = "".join(part if place % 2 else _mended(part, columns, texts) for place, part in enumerate(parts))
    if mended == text or parsed(mended) is None:
        return None
    return f"Did you mean --where {shown(shlex.quote(mended.strip()), 160)}?"


def _mended(part: str, columns: Collection[str], texts: Mapping[str, Collection[str]]) -> str:
    for pattern, sign in _SIGNS:
        part = pattern.sub(sign, part)
    part = _QUANTITY.sub(_in_si, part)
    return _WORD.sub(lambda found: _quoted(found, columns, texts), part)


def _in_si(found: re.Match[str]) -> str:
    """10us as 1e-05, 33.6MB as 33600000."""
    number, second, prefix = found.groups()
    with suppress(UsageError, KeyError):
        if second:
            return repr(parse_seconds(number + second, "--where"))
        value = float(number) * SIZES[f"{prefix}b".lower()]
        return str(int(value)) if value.is_integer() else repr(value)
    return found.group()


def _quoted(found: re.Match[str], columns: Collection[str], texts: Mapping[str, Collection[str]]) -> str:
    left, sign, right = found.group("left", "sign", "right")
    return f'{left}{sign}"{right}"' if left in texts and right not in columns else found.group()


def check_texts(tree: ast.expr, texts: Mapping[str, Collection[str]], closed: Collection[str]) -> None:
    """See that texts are compared with what their columns can hold.

    Args:
        tree: the condition.
        texts: what columns can hold; nothing where nobody knows before.
        closed: columns whose texts are memwall's own, so that no other one can be meant, not even by !=.

    Raises:
        UsageError: a column never holds that text.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for left, sign, right in zip(sides, node.ops, sides[1:], strict=False):
            for column, text in ((left, right), (right, left)):
                name, held = ast.unparse(column), texts.get(ast.unparse(column))
                if not held or not isinstance(text, ast.Constant) or not isinstance(text.value, str):
                    continue
                asked = isinstance(sign, ast.Eq) or (isinstance(sign, ast.NotEq) and name in closed)
                if asked and text.value not in held:
                    raise UsageError(
                        f"--where: {name} is never '{shown(text.value)}' here", f"It is {_choices(held)}"
                    )


def _choices(held: Collection[str]) -> str:
    return " or ".join(f'"{shown(each, 120)}"' for each in held)
