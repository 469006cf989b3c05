"""memwall node."""

from __future__ import annotations

from typing import Any

import click

from memwall import nodes
from memwall.cli.options import output_options, set_option
from memwall.cli.output import Output, emit, listed, write_yaml
from memwall.hardware import load as load_device

EPILOG = """\b
Examples:
  memwall node
  memwall node dgx-h100
  memwall node gb300-nvl72 --json
  memwall node dgx-h100 --yaml
"""


@click.command("node", epilog=EPILOG)
@click.argument("name", required=False)
@click.option("--yaml", "as_yaml", is_flag=True, help="print its file, which is accepted back")
@set_option
@output_options
def command(name: str | None, as_yaml: bool, changes: dict[str, str], **options: Any) -> None:
    """Nodes: GPUs, links, network and host, and what leaving one costs. Without a name, the list."""
    from memwall.render import nodes as view

    output = Output(**options)
    if name is None:
        found = listed(nodes.NODES, nodes.from_entry)
        emit(output, lambda: view.records(found), lambda: view.list_page(found), several=True)
        return
    entry = nodes.NODES.find(name)
    node = nodes.from_entry(entry)
    if as_yaml:
        write_yaml(output, entry.text)
        return
    from memwall.reports.node import node_report

    report = node_report(node, load_device(node.gpu, changes))
    emit(output, lambda: [view.record(report)], lambda: view.page(report))
