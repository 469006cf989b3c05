"""Loading the model that a command names, and warning of what was not understood."""

from __future__ import annotations

import click

from memwall.errors import shown
from memwall.models.load import load
from memwall.models.model import Model


def load_model(name: str) -> Model:
    """The model; keys of its file that nobody read and that may size something are warned of.

    Raises:
        MemwallError: as `load` says.
    """
    model = load(name)
    for warning in model.warnings:
        click.echo(f"warning: {shown(name, 120)}: {warning}", err=True)
    return model
