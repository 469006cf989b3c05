"""The options that name a model and what it has read; loading it, and warning of what was not understood."""

from __future__ import annotations

import click

from memwall.cli.options import MODEL, Count, F
from memwall.errors import shown
from memwall.models.load import load
from memwall.models.model import Model


def model_option(command: F) -> F:
    """--model."""
    text = "a model, its YAML file, its config.json or the folder with one: memwall model list"
    return click.option("--model", type=MODEL, required=True, help=text)(command)


def source_option(command: F) -> F:
    """--source-tokens, of models with an encoder and a decoder."""
    text = "what an encoder has read for each sequence; default: its positions, else the context"
    return click.option("--source-tokens", type=Count(1500), help=text)(command)


def load_model(name: str) -> Model:
    """The model; keys of its file that nobody read and that may size something are warned of.

    Raises:
        MemwallError: as `load` says.
    """
    model = load(name)
    for warning in model.warnings:
        click.echo(f"warning: {shown(name, 120)}: {warning}", err=True)
    return model
