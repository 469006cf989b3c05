"""What every report can do: show itself at a prompt and in a notebook, and hand itself to pandas and polars.

A report knows nothing of how it is shown: the module of memwall.render that has its name does, and is found
when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Report:
    """A command's answer as a value."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The report under the documented keys of its JSON."""
        record: dict[str, Any] = _view(self).record(self)
        return record

    def to_rows(self) -> list[dict[str, Any]]:
        """Flat rows, which `pandas.DataFrame` and `polars.DataFrame` take as they are.

        Of a pass one for each kernel, of a plan one for each layout, of a comparison of formats one for each
        format, else the report itself, its nested keys joined with a dot as in its CSV.
        """
        data, view = import_module("memwall.render.data"), _view(self)
        records = getattr(view, "rows", lambda each: [view.record(each)])(self)
        return [data.flat(record) for record in records]

    def __repr__(self) -> str:
        lines: str = import_module("memwall.render.text").render(_view(self).page(self))
        return lines.rstrip()

    def _repr_html_(self) -> str:
        html: str = import_module("memwall.render.html").render(_view(self).page(self))
        return html


def _view(report: Report) -> Any:
    """The module that shows a report: memwall.reports.step_report is shown by memwall.render.step."""
    name = type(report).__module__.rpartition(".")[2].removesuffix("_report")
    return import_module(f"memwall.render.{name}")
