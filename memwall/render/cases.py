"""Predicted tables as CSV and as JSON Lines."""

from __future__ import annotations

import csv
import io
import json

from memwall.reports.predict import PredictReport


def to_csv(report: PredictReport) -> str:
    """A header and one row a case; what is not known is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, report.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(report.records())
    return text.getvalue()


def to_json_lines(report: PredictReport) -> str:
    """One object a line; what is not known is null."""
    return "".join(json.dumps(record, allow_nan=False) + "\n" for record in report.records())
