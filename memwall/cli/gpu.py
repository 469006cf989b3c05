"""memwall gpu list | show | compare."""

from __future__ import annotations

from typing import Any

import click

from memwall import hardware
from memwall.catalog import HARDWARE
from memwall.cli.options import GPU, VENDOR, output_options, set_option, split_names
from memwall.cli.output import Output, emit, listed, write_yaml
from memwall.errors import UsageError, shown

EPILOG = """\b
Examples:
  memwall gpu list
  memwall gpu show h100
  memwall gpu compare h100 h200 mi300x
"""

LIST_EPILOG = """\b
Examples:
  memwall gpu list --vendor NVIDIA
  memwall gpu list --json
"""

SHOW_EPILOG = """\b
Examples:
  memwall gpu show h100
  memwall gpu show h100 --yaml > my-gpu.yaml
  memwall gpu show h100 --set memory.bandwidth_gb_per_s=4000
"""

COMPARE_EPILOG = """\b
Examples:
  memwall gpu compare h100 h200 mi300x
  memwall gpu compare a100 h100 --format markdown
"""


@click.group("gpu", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """The hardware catalogue: list, show, compare."""


@command.command("list", epilog=LIST_EPILOG)
@click.option("--vendor", type=VENDOR, help="only this maker's")
@output_options
def list_gpus(vendor: str | None, **options: Any) -> None:
    """Every device: memory, bandwidth, 16-bit peak and ridge point."""
    from memwall.render import gpus

    devices = listed(HARDWARE, hardware.from_entry)
    if vendor is not None:
        makers = sorted({str(device.data["vendor"]) for device in devices})
        devices = [device for device in devices if device.data["vendor"].lower() == vendor.lower()]
        if not devices:
            raise UsageError(f"no device of '{shown(vendor)}'", f"The makers: {', '.join(makers)}")
    devices.sort(key=lambda device: (device.data["vendor"], device.data["year"], device.name))
    emit(
        Output(**options),
        lambda: [gpus.record(d) for d in devices],
        lambda: gpus.list_page(devices),
        several=True,
    )


@command.command("show", epilog=SHOW_EPILOG)
@click.argument("gpu", type=GPU)
@click.option("--yaml", "as_yaml", is_flag=True, help="the file itself, accepted back by --gpu FILE.yaml")
@set_option
@output_options
def show_gpu(gpu: str, as_yaml: bool, changes: dict[str, str], **options: Any) -> None:
    """Everything known of one device, and where each number comes from."""
    from memwall.render import gpus

    output = Output(**options)
    device = hardware.load(gpu, changes)
    if as_yaml:
        write_yaml(output, _yaml(gpu, device, changed=bool(changes)))
        return
    emit(output, lambda: [gpus.full_record(device)], lambda: gpus.show_page(device))


@command.command("compare", epilog=COMPARE_EPILOG)
@click.argument("names", nargs=-1, required=True, type=GPU, metavar="GPU GPU...")
@set_option
@output_options
def compare_gpus(names: tuple[str, ...], changes: dict[str, str], **options: Any) -> None:
    """Devices side by side: peaks, memory, ridge points, links, power."""
    from memwall.render import gpus

    devices = [hardware.load(name, changes) for name in split_names(",".join(names))]
    emit(
        Output(**options),
        lambda: [gpus.record(d) for d in devices],
        lambda: gpus.compare_page(devices),
        several=True,
    )


def _yaml(name: str, device: hardware.Device, changed: bool) -> str:
    """The file as it stands; with what-ifs, its data with `assumed` naming them."""
    if not changed:
        return HARDWARE.find(name).text
    import yaml

    return yaml.safe_dump(dict(device.data), sort_keys=False, allow_unicode=True, width=150)
