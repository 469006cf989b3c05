"""memwall hbm."""

from __future__ import annotations

from typing import Any

import click

from memwall import hardware, yamlfile
from memwall.catalog import HARDWARE, shipped_text
from memwall.cli.options import output_options
from memwall.cli.output import Output, emit, listed

EPILOG = """\b
Examples:
  memwall hbm
  memwall hbm --all --json

\b
A standard's maximum is not what a product runs: an H100 has HBM3 at 5.2 of the standard's 6.4 Gbit/s.
"""


@click.command("hbm", epilog=EPILOG)
@click.option("--all", "every", is_flag=True, help="GDDR and LPDDR too")
@output_options
def command(every: bool, **options: Any) -> None:
    """Memory standards beside what each product runs."""
    from memwall.render import memory

    path = "hardware/standards/memory.yaml"
    standards = yamlfile.parse(shipped_text(path), path)["memory"]
    if not every:
        standards = [standard for standard in standards if standard["name"].startswith("HBM")]
    products = memory.products(standards, listed(HARDWARE, hardware.from_entry))
    emit(Output(**options), lambda: memory.records(products), lambda: memory.page(products), several=True)
