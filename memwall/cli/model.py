"""memwall model list | show."""

from __future__ import annotations

from typing import Any

import click

from memwall.catalog import MODELS
from memwall.cli.models import load_model
from memwall.cli.options import MODEL, output_options
from memwall.cli.output import Output, emit, listed, write_yaml
from memwall.models import load as models
from memwall.models.huggingface.folder import config_path

EPILOG = """\b
Examples:
  memwall model list
  memwall model show llama3-70b
"""

LIST_EPILOG = """\b
Examples:
  memwall model list
  memwall model list --format csv
"""

SHOW_EPILOG = """\b
Examples:
  memwall model show llama3-70b
  memwall model show config.json --json
  memwall model show llama3-70b --yaml > my-model.yaml
"""


@click.group("model", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """The model catalogue: list, show."""


@command.command("list", epilog=LIST_EPILOG)
@output_options
def list_models(**options: Any) -> None:
    """Every model: parameters, layers, attention."""
    from memwall.render import models as view

    found = listed(MODELS, models.from_entry)
    emit(
        Output(**options),
        lambda: [view.record(m) for m in found],
        lambda: view.list_page(found),
        several=True,
    )


@command.command("show", epilog=SHOW_EPILOG)
@click.argument("model", type=MODEL)
@click.option("--yaml", "as_yaml", is_flag=True, help="as a model's file, accepted back by --model FILE.yaml")
@output_options
def show_model(model: str, as_yaml: bool, **options: Any) -> None:
    """One model: parameters to the last one, layers, KV cache a token."""
    from memwall.models.yamlform import to_yaml
    from memwall.render import models as view

    output = Output(**options)
    found = load_model(model)
    if as_yaml:
        config = config_path(model)
        write_yaml(output, to_yaml(found, config) if config else MODELS.find(model).text)
        return
    emit(output, lambda: [view.record(found)], lambda: view.show_page(found))
