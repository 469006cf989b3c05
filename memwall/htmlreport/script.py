"""Closed forms as data for page.js: one list of operations that all of them share, and who uses which.

A form is written {"f": its operation's place}; an operation as ["+", place, place], an input as its name, a
constant as itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from memwall.htmlreport.forms import Forms, Kernel
from memwall.htmlreport.trace import Region, Tape, Traced, needed, operands

Named = Mapping[str, Mapping[str, Forms]]
"""The forms of each GPU and phase; all on one tape."""


def script_of(tape: Tape, forms: Named) -> str:
    """The constants OPERATIONS, CANDIDATES, KERNELS and FORMS of the page."""
    regions = [region for phases in forms.values() for each in phases.values() for region in each.regions]
    roots = {node for region in regions for node in _roots(region)}
    places = {node: place for place, node in enumerate(needed(tape, roots))}
    candidates = dict.fromkeys(tape.nodes[node][2] for node in places if tape.nodes[node][0] == "least")
    tables = {table: place for place, table in enumerate(candidates)}
    kernels = dict.fromkeys(_text(kernel, places) for region in regions for kernel in region.result.kernels)
    numbered = {text: number for number, text in enumerate(kernels)}
    operations = ",".join(_operation(tape.nodes[node], places, tables) for node in places)
    parts = {
        gpu: {phase: _phase(each, places, numbered) for phase, each in phases.items()}
        for gpu, phases in forms.items()
    }
    written = {
        "OPERATIONS": f"[{operations}]",
        "CANDIDATES": _json(list(candidates)),
        "KERNELS": f"[{','.join(kernels)}]",
        "FORMS": _json(parts),
    }
    return "\n".join(f"const {name}={text};" for name, text in written.items())


_ESCAPED = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}
"""What a browser may take for markup, or for a line's end, within a script; JSON has it in strings alone."""


def for_script(report: Mapping[str, Any], forms: str) -> str:
    """The constants of the page's script, in which nothing ends it or hides its end."""
    return f"const REPORT={_json(report)};\n{forms}".translate(_ESCAPED)


def _roots(region: Region) -> Iterator[int]:
    """The nodes that a region's conditions and numbers rest on."""
    yield from (node for node, _ in region.guards)
    yield from _traced(region.result)


def _traced(value: Any) -> Iterator[int]:
    if isinstance(value, Traced):
        yield value.node
    elif isinstance(value, tuple):
        for each in value:
            yield from _traced(each)


def _operation(node: tuple[Any, ...], places: Mapping[int, int], tables: Mapping[Any, int]) -> str:
    kind, *parts = node
    if kind == "number":
        return _number(parts[0])
    if kind == "input":
        return _json(parts[0])
    if kind == "candidate":
        return _json([kind, parts[0]])
    of = [places[each] for each in operands(node)]
    return _json([kind, *of, *([tables[parts[1]]] if kind == "least" else [])])


def _number(value: Any) -> str:
    """A constant; whole ones without a point, so that a page says what the command line says."""
    number = float(value)
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return str(int(value)) if number.is_integer() and not isinstance(value, str) else repr(number)


def _phase(forms: Forms, places: Mapping[int, int], kernels: Mapping[str, int]) -> dict[str, Any]:
    return {
        "weight_bytes": forms.weight_bytes,
        "capacity_bytes": forms.capacity_bytes,
        "regions": [
            {
                "guards": [[places[node], side] for node, side in region.guards],
                **_data(region.result._replace(kernels=()), places),
                "kernels": [kernels[_text(kernel, places)] for kernel in region.result.kernels],
            }
            for region in forms.regions
        ],
    }


def _text(kernel: Kernel, places: Mapping[int, int]) -> str:
    return _json(_data(kernel, places))


def _data(value: Any, places: Mapping[int, int]) -> Any:
    """Names, numbers and forms as JSON has them."""
    if isinstance(value, Traced):
        return {"f": places[value.node]}
    if hasattr(value, "_asdict"):
        return {key: _data(each, places) for key, each in value._asdict().items()}
    if isinstance(value, tuple):
        return [_data(each, places) for each in value]
    return value


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
