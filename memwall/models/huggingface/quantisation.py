"""quantization_config: how a checkpoint stores its linear layers, and which it leaves at 16 bits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memwall.dtypes import Dtype, find
from memwall.models.huggingface.config import Config
from memwall.models.inventory import layer_weights
from memwall.models.model import Layers, Model, Storage
from memwall.units import GIBI

_WHOLE_ROW = GIBI
"""A block longer than any row: one scale a row."""


class Quantisation(NamedTuple):
    """What a quantization_config says."""

    storage: Storage
    skipped: tuple[str, ...]
    """Modules left at 16 bits, as names, globs or `re:` patterns."""


def read(c: Config) -> Quantisation | None:
    """The quantisation of a config; None where it has none.

    Raises:
        FileError: a method or a number of bits that is not known here.
    """
    holder = c if c.data.get("quantization_config") else None
    if holder is None and c.data.get("compression_config"):
        c.read.add("compression_config")
        return _compressed(c.inner("compression_config"))
    if holder is None:
        return None
    q = holder.inner("quantization_config")
    method = str(q.get("quant_method") or ("modelopt" if q.get("quant_algo") else "")).lower()
    reader = _READERS.get(method)
    if reader is None:
        raise q.wrong(
            "quant_method", f"'{method}' is not known here", f"Known: {', '.join(sorted(_READERS))}"
        )
    return reader(q)


def skip(model: Model, skipped: Sequence[str]) -> Model:
    """The model with its linear weights that match one of the patterns left at 16 bits, in every layer.

    A pattern that names some layers alone, such as model.layers.0, splits their group: counted as that many
    layers of the group, since groups do not keep their order.
    """
    if not skipped:
        return model
    groups: list[Layers] = []
    first = 0
    for group in model.layers:
        by_names: dict[frozenset[str], int] = {}
        for index in range(first, first + group.repeats):
            names = _skipped_in(group, model.hidden_size, index, skipped)
            by_names[names] = by_names.get(names, 0) + 1
        groups += [group._replace(repeats=n, unquantised=names) for names, n in by_names.items()]
        first += group.repeats
    return model._replace(layers=tuple(groups))


def _skipped_in(group: Layers, hidden: int, index: int, skipped: Sequence[str]) -> frozenset[str]:
    names = [f"{w.part}.{w.name}" for w in layer_weights(group, hidden) if w.role == "linear"]
    return frozenset(name for name in names if any(_matches(name, index, pattern) for pattern in skipped))


def _matches(name: str, index: int, pattern: str) -> bool:
    """Whether a pattern covers layer `index`'s weight: a module, a path or a part of it, a glob, `re:`."""
    path = f"model.layers.{index}.{name}"
    if pattern.startswith("re:"):
        return re.match(pattern[3:], path) is not None
    if pattern in (name.rpartition(".")[2], name):  # the module alone, as in ["o_proj"]
        return True
    glob = re.escape(pattern.rstrip(".*") if pattern.endswith("*") else pattern).replace(r"\*", "[^.]+")
    glob = re.sub(r"^(model\\\.)?(language_model\\\.)?(model\\\.)?", "model\\.", glob)
    return re.match(rf"{glob}(\.|$)", path) is not None


def _names(q: Config, *keys: str) -> tuple[str, ...]:
    found: list[str] = []
    for key in keys:
        value = q.get(key)
        if isinstance(value, Sequence | Mapping) and not isinstance(value, str):
            found += [str(each) for each in value]
    return tuple(found)


def _fp8(q: Config) -> Quantisation:
    """DeepSeek's: e4m3 with a 32-bit scale a square of weight_block_size, or one a tensor."""
    square = q.get("weight_block_size")
    skipped = _names(q, "modules_to_not_convert", "ignored_layers")
    q.get("fmt"), q.get("activation_scheme"), q.get("scale_fmt"), q.get("activation_block_size")
    if not square:
        return Quantisation(Storage("fp8, a scale a tensor", find("fp8"), compute="fp8"), skipped)
    rows, cols = int(square[0]), int(square[1])
    dtype = Dtype(f"fp8-{rows}x{cols}", 8, None, 32, cols, rows)
    scheme = f"fp8 linear layers, a 32-bit scale per {rows}x{cols}, 16 bits elsewhere"
    return Quantisation(Storage(scheme, dtype, compute="fp8"), skipped)


def _mxfp4(q: Config) -> Quantisation:
    """gpt-oss's: the experts alone."""
    skipped = (*_names(q, "modules_to_not_convert"), r"re:(?!.*\.mlp\.experts\.)")
    return Quantisation(Storage("mxfp4 experts, 16 bits elsewhere", find("mxfp4")), skipped)


def _grouped(bits: int, group: int, zeros: bool, method: str, head: bool = False) -> Storage:
    """Integers with a 16-bit scale a group along a row, and packed zero points."""
    block = group if group > 0 else _WHOLE_ROW
    scale = 16 + (bits if zeros else 0)
    each = f"group of {group}" if group > 0 else "row"
    scheme = f"{method}: int{bits}, a 16-bit scale{' and a zero point' if zeros else ''} a {each}"
    return Storage(scheme, Dtype(f"int{bits}-g{group}", bits, None, scale, block), head)


def _group_size(q: Config, key: str) -> int:
    """Elements that share a scale; -1 for a whole row."""
    size: int = q.whole(key, 128, least=-1)
    if size == 0:
        raise q.wrong(key, "must be -1 for a row, or at least 1, not 0")
    return size


def _gptq(q: Config) -> Quantisation:
    """GPTQ stores zero points even where they are symmetric, and a group's index (4 bytes) for each input."""
    bits, group = q.whole("bits", least=2, most=8), _group_size(q, "group_size")
    for key in (
        "desc_act",
        "sym",
        "damp_percent",
        "true_sequential",
        "static_groups",
        "checkpoint_format",
        "meta",
    ):
        q.get(key)
    head = q.flag("lm_head")
    return Quantisation(
        _grouped(bits, group, True, "GPTQ", head), _names(q, "modules_in_block_to_not_quantize")
    )


def _awq(q: Config) -> Quantisation:
    bits = q.whole("bits" if q.has("bits") else "w_bit", 4, least=2, most=8)
    group = _group_size(q, "group_size" if q.has("group_size") else "q_group_size")
    zeros = q.flag("zero_point", True)
    q.get("version"), q.get("backend"), q.get("do_fuse")
    return Quantisation(_grouped(bits, group, zeros, "AWQ"), _names(q, "modules_to_not_convert"))


def _bitsandbytes(q: Config) -> Quantisation:
    """nf4: a 32-bit scale per 64; with double quantisation 8 bits, and a 32-bit one per 256 of them."""
    skipped = _names(q, "llm_int8_skip_modules")
    for key in list(q.data):
        q.get(key)
    eight, four = (q.flag(f"load_in_{n}bit") or q.flag(f"_load_in_{n}bit") for n in (8, 4))
    if eight and four:
        raise q.wrong("load_in_4bit", "and load_in_8bit contradict each other", "Leave one of them out")
    if eight:
        dtype = Dtype("int8-row", 8, None, 32, _WHOLE_ROW)
        return Quantisation(Storage("bitsandbytes: int8, a 32-bit scale a row", dtype), skipped)
    double = q.flag("bnb_4bit_use_double_quant")
    scale = 8 if double else 32  # the second level, 32 bits per 256 scales, is 0.002 bits an element
    kind = str(q.get("bnb_4bit_quant_type") or "fp4")
    dtype = Dtype(f"{kind}-g64", 4, None, scale, 64)
    return Quantisation(Storage(f"bitsandbytes: {kind}, a {scale}-bit scale per 64", dtype), skipped)


def _modelopt(q: Config) -> Quantisation:
    """NVIDIA ModelOpt: nvfp4 with an 8-bit scale per 16, or fp8 with one a tensor."""
    inner = q.inner("quantization") if q.data.get("quantization") else q
    algorithm = str(inner.get("quant_algo") or "").upper()
    skipped = _names(inner, "exclude_modules", "ignore") or _names(q, "ignore")
    for key in (
        "kv_cache_quant_algo",
        "group_size",
        "producer",
        "config_groups",
        "kv_cache_scheme",
        "quant_algo",
    ):
        inner.get(key), q.get(key)
    if "NVFP4" in algorithm:
        scheme = "nvfp4 linear layers, 16 bits elsewhere"
        return Quantisation(Storage(scheme, find("nvfp4"), compute="nvfp4"), skipped)
    if "FP8" in algorithm:
        return Quantisation(Storage("fp8, a scale a tensor", find("fp8"), compute="fp8"), skipped)
    raise q.wrong("quant_algo", f"'{algorithm}' is not known here", "Known: NVFP4, FP8")


def _compressed(q: Config) -> Quantisation:
    """compressed-tensors: the first group's weights speak for all linear layers."""
    for key in ("format", "global_compression_ratio", "kv_cache_scheme", "quantization_status", "version",
                "sparsity_config", "transform_config", "quant_method"):  # fmt: skip
        q.get(key)
    groups = q.get("config_groups") or {}
    first: Any = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    if not isinstance(weights, Mapping) or weights.get("num_bits") not in range(2, 17):
        raise q.wrong("config_groups", "must say weights.num_bits of a group, from 2 to 16")
    skipped = tuple(name for name in _names(q, "ignore") if name != "lm_head")
    storage = _compressed_storage(weights)._replace(compute=_computed(first.get("input_activations")))
    return Quantisation(storage, skipped)


def _computed(activations: Any) -> str | None:
    """The format of products whose activations are quantised, too; None where they are not."""
    if not isinstance(activations, Mapping):
        return None
    kind = f"{activations.get('type', 'int')}{activations.get('num_bits')}"
    return {"float8": "fp8", "int8": "int8", "float4": "nvfp4"}.get(kind)


def _compressed_storage(weights: Mapping[str, Any]) -> Storage:
    bits, kind, strategy = weights["num_bits"], weights.get("type", "int"), weights.get("strategy", "channel")
    group, square = weights.get("group_size") or 0, weights.get("block_structure")
    name = f"{kind}{bits}"
    if kind == "float" and bits == 4 and strategy in ("tensor_group", "group"):
        form = find("nvfp4" if group == 16 else "mxfp4")
        return Storage(f"compressed-tensors: {form.name}", form)
    if strategy == "block" and square:
        dtype = Dtype(f"{name}-block", bits, None, 32, int(square[1]), int(square[0]))
        return Storage(f"compressed-tensors: {name}, a 32-bit scale per {square[0]}x{square[1]}", dtype)
    if strategy == "tensor":
        return Storage(f"compressed-tensors: {name}, a scale a tensor", Dtype(name, bits, None))
    if strategy == "group" and group:
        zeros = not weights.get("symmetric", True)
        return _grouped(bits, group, zeros, "compressed-tensors")
    dtype = Dtype(f"{name}-row", bits, None, 16, _WHOLE_ROW)
    return Storage(f"compressed-tensors: {name}, a 16-bit scale a row", dtype)


_READERS = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "mxfp4": _mxfp4,
    "gptq": _gptq,
    "awq": _awq,
    "bitsandbytes": _bitsandbytes,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "compressed-tensors": _compressed,
}
