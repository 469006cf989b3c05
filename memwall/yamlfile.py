"""YAML text to plain data, read strictly, with every fault named by file and line.

Strict means: one document, a mapping on top, no key twice, no anchors and aliases (an alias bomb
is a hundred bytes long), decimal numbers that are finite. PyYAML's own constructor would take
the last of two equal keys in silence, so the composed nodes are read here. libyaml parses.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from memwall.errors import FileError, shown
from memwall.units import MEBI

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML built without libyaml: slower, same result
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

LARGEST_FILE_BYTES = MEBI
DEEPEST = 20
EXAMPLE = "memwall gpu show h100 --yaml, memwall model show llama3-8b --yaml"
_TAG = "tag:yaml.org,2002:"
_OCTAL = re.compile(r"[-+]?0[0-9_]+")


def parse(text: str, where: str) -> dict[str, Any]:
    """The mapping that a YAML text holds.

    Args:
        text: the file's text.
        where: the file's name, for messages.

    Raises:
        FileError: not YAML, not one mapping, or anything the module's docstring excludes.
    """
    node = _compose(text, where)
    if not isinstance(node, yaml.MappingNode):
        raise FileError(
            f"{where}:1: a list of 'key: value' lines is expected, as in 'name: my-gpu'",
            f"One to copy: {EXAMPLE}",
        )
    data = _build(node, where, set())
    return data  # type: ignore[no-any-return]


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    """The 1-based line where the value at `path` stands, or where its nearest parent does."""
    node = yaml.compose(text, Loader=_Loader)
    line = 1
    for step in path:
        found = _child(node, step)
        if found is None:
            break
        line, node = found
    return line


def lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The 1-based line of every value, by its path; for files of many entries."""
    found: dict[tuple[str | int, ...], int] = {}

    def walk(node: Any, path: tuple[str | int, ...]) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                found[*path, key.value] = key.start_mark.line + 1
                walk(value, (*path, key.value))
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                found[*path, index] = value.start_mark.line + 1
                walk(value, (*path, index))

    walk(yaml.compose(text, Loader=_Loader), ())
    return found


def _child(node: Any, step: str | int) -> tuple[int, Any] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line + 1, node.value[step]
    return None


def _compose(text: str, where: str) -> Any:
    if len(text) > LARGEST_FILE_BYTES:
        raise FileError(f"{where}: larger than 1 MiB", "A GPU or model file is a few kilobytes long")
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = (error.problem or "not YAML").replace("\t", "a tab").removeprefix("but ")
        raise FileError(f"{where}:{line}: {shown(problem, 120)}", _syntax_hint(problem)) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise FileError(
            f"{where}:1: not YAML: {shown(str(error).partition(chr(10))[0], 80)}",
            f"Is it a text file? One to copy: {EXAMPLE}",
        ) from None


def _syntax_hint(problem: str) -> str:
    if "tab" in problem or "cannot start any token" in problem:
        return "Indent with spaces, never tabs, and quote a text that begins with % @ or `"
    if "another document" in problem:
        return "One file holds one GPU or model: delete the second --- and what follows it"
    if "nesting" in problem:
        return f"A GPU or model file is five levels deep at most; one to copy: {EXAMPLE}"
    if "undefined alias" in problem:
        return "Quote a text that begins with *"
    return (
        "Check the syntax there: key: value, lists as [a, b], and quotes round a text that has ': ' or ' #'"
    )


def _build(node: Any, where: str, seen: set[int], depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise FileError(
            f"{where}:{node.start_mark.line + 1}: nested more than {DEEPEST} levels deep",
            f"One to copy: {EXAMPLE}",
        )
    if id(node) in seen:
        raise FileError(
            f"{where}:{node.start_mark.line + 1}: YAML anchors and aliases (&, *) are not read",
            "Write the value out where it is needed",
        )
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, where)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, where, seen, depth + 1) for item in node.value]
    return _mapping(node, where, seen, depth + 1)


def _mapping(node: Any, where: str, seen: set[int], depth: int) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise FileError(f"{where}:{line}: a key must be a word", "For example: memory:")
        if key_node.value in data:
            raise FileError(
                f"{where}:{line}: the key '{shown(key_node.value)}' stands twice", "Keep one of the two"
            )
        data[key_node.value] = _build(value_node, where, seen, depth)
    return data


def _scalar(node: Any, where: str) -> Any:
    kind = node.tag.removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return node.value.lower() in ("true", "yes", "on")
    if kind not in ("int", "float"):
        return node.value
    try:
        number = int(node.value) if kind == "int" else float(node.value)
        if number - number != 0 or _OCTAL.fullmatch(node.value):  # infinity and NaN; 010 is 8 in YAML 1.1
            raise ValueError
    except ValueError:
        raise FileError(
            f"{where}:{node.start_mark.line + 1}: '{shown(node.value)}' is not a plain decimal number",
            "Write it out, for example 3350 or 5.238",
        ) from None
    return number
