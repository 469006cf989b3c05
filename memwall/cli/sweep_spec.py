"""What `memwall sweep` was asked: its flags as a sweep in plain texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memwall.cli.options import DIMS
from memwall.errors import UsageError, shown

if TYPE_CHECKING:
    from memwall.sweeps.plan import Spec, Sweep

OF_MODELS = {
    "step": ("batch", "context", "seq", "impl", "phase", "eager"),
    "capacity": ("batch", "context", "tp"),
}
"""What sweeps of a model take, and which ranges and settings."""
_OTHERS = ("context", "tp", "causal", "impl", "phase", "eager", "estimate")


def spec_of(what: str | None, options: Mapping[str, Any]) -> Spec:
    """The sweep as it was typed.

    Raises:
        UsageError: neither an operator nor a step, or flags of the other.
    """
    from memwall.sweeps.plan import Spec
    from memwall.sweeps.ranges import names

    if what is not None and what not in OF_MODELS:
        kinds = " or ".join(OF_MODELS)
        raise UsageError(f"a sweep is of an operator, or {kinds}, not of '{shown(what)}'", "Try --op gemm")
    if (what is None) == (options["op"] is None):
        raise UsageError(
            "what to sweep: --op OP, or step or capacity with --model", "For example: memwall sweep --op gemm"
        )
    _only(what, options)
    words: dict[str, tuple[str | None, ...]] = {"gpu": tuple(_gpus(options["gpu"]))}
    if what:
        words["model"] = tuple(names(options["model"]))
    for name in ("dtype", "weight_dtype", "kv_dtype"):
        given = _formats(options[name])
        words[name] = given or (("bf16",) if name == "dtype" and not what else (None,))
    ranges = {name: options[name] for name in (*DIMS, "context", "tp") if options[name] is not None}
    settings = {
        name: options[name] for name in ("causal", "impl", "phase", "eager", "estimate") if options[name]
    }
    if options["causal"] is False:
        settings["causal"] = False
    if options["changes"]:
        settings["changes"] = dict(options["changes"])
    return Spec(what or _op(options["op"]), words, ranges, settings, options["where"])


def _only(what: str | None, options: Mapping[str, Any]) -> None:
    """What would be ignored is refused."""
    of, taken = (
        (f"a {what}", OF_MODELS[what]) if what else ("an operator", (*DIMS, "causal", "impl", "estimate"))
    )
    if what and options["model"] is None:
        raise UsageError(f"sweep {what} needs --model", "The list: memwall model list")
    others = [name for name in dict.fromkeys((*DIMS, *_OTHERS)) if name not in taken]
    wrong = [name for name in others if options[name] not in (None, False)]
    wrong += ["model"] if options["model"] and not what else []
    if wrong:
        raise UsageError(f"{of} has no --{wrong[0].replace('_', '-')}", "Leave it out; memwall sweep --help")


def _op(name: str) -> str:
    from memwall.ops import registry

    return registry.find(name).name


def _gpus(text: str | None) -> list[str]:
    """Canonical names; a file of the user's by its path."""
    from memwall import hardware
    from memwall.cli.options import named_gpus

    devices = [(name, hardware.load(name)) for name in named_gpus(text)]
    return [name if device.own else device.name for name, device in devices]


def _formats(text: str | None) -> tuple[str, ...]:
    from memwall import dtypes
    from memwall.sweeps.ranges import names

    return tuple(dtypes.find(name).name for name in names(text or ""))


def shard_of(sweep: Sweep, text: str | None) -> range:
    """The blocks of --shard 3/16; all of them without it."""
    if text is None:
        return range(sweep.grid.count)
    index, slash, of = text.partition("/")
    good = slash and index.strip().isdigit() and of.strip().isdigit()
    if not good or not 1 <= int(index) <= int(of):
        raise UsageError(
            f"--shard takes I/N, from 1/N to N/N, not '{shown(text)}'", "For example: --shard 3/16"
        )
    return sweep.grid.shard(int(index), int(of))
