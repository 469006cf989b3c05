"""How a report shows itself in a notebook, and hands itself to pandas and polars.

A report knows nothing of how it is shown: the module of memwall.render that has its name does, and is found
when it is first asked for. Reports take these functions as their methods.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def _view(report: Any) -> Any:
    """The module that shows a report: memwall.reports.step is shown by memwall.render.step."""
    name = type(report).__module__.rpartition(".")[2].removesuffix("_report")
    return import_module(f"memwall.render.{name}")


def to_dict(report: Any) -> dict[str, Any]:
    """The report under the documented keys of its JSON."""
    record: dict[str, Any] = _view(report).record(report)
    return record


def to_rows(report: Any) -> list[dict[str, Any]]:
    """Flat rows, which `pandas.DataFrame` and `polars.DataFrame` take as they are.

    Of a pass one for each kernel, of a plan one for each layout, of a comparison of formats one for each
    format, of a hierarchy one for each level, of a derivation one for each quantity, of an export one for
    each kernel, else the report itself, its nested keys joined with a dot as in its CSV.
    """
    data, view = import_module("memwall.render.data"), _view(report)
    records = getattr(view, "rows", lambda each: [view.record(each)])(report)
    return [data.flat(record) for record in records]


def text(report: Any) -> str:
    """The report as the command prints it, for a plain prompt."""
    lines: str = import_module("memwall.render.text").render(_view(report).page(report))
    return lines.rstrip()


def repr_html(report: Any) -> str:
    """The report as a notebook shows it."""
    html: str = import_module("memwall.render.html").render(_view(report).page(report))
    return html
