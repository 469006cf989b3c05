"""A model as the YAML that configs/models/ holds, so that an imported one can be kept, read and edited."""

from __future__ import annotations

from typing import Any

import yaml

from memwall.errors import NotAvailable
from memwall.models.load import kind_of
from memwall.models.model import Layers, Model


def to_yaml(model: Model) -> str:
    """The model's file.

    Raises:
        NotAvailable: it has a part that such files have no key for.
    """
    _check(model)
    data: dict[str, Any] = {
        "name": model.name,
        "title": model.title,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "tied_embeddings": model.tied_embeddings,
        "norm_bias": model.norm_bias,
        "context": model.context,
        "layers": [_group(group) for group in model.layers],
        "source": [{"derived": "its config.json"}],
    }
    kept = {key: value for key, value in data.items() if value is not None and value is not False}
    kept["tied_embeddings"] = model.tied_embeddings
    return yaml.safe_dump(kept, sort_keys=False, default_flow_style=None, width=110)


def _check(model: Model) -> None:
    plain = Model("", "", 1, 1, False, ())
    beyond = {
        "an encoder": bool(model.encoder) or not model.decodes,
        "an image or sound tower": bool(model.towers),
        "a checkpoint's own format": model.storage is not None,
        "tables or projections outside the layers": bool(model.extras) or model.row != model.hidden_size,
        "a head or a final norm of its own kind": (model.head, model.head_bias, model.final_norm)
        != (plain.head, plain.head_bias, plain.final_norm),
        "weights of no named part": any(group.extras or group.cross for group in model.layers),
    }
    found = [what for what, there in beyond.items() if there]
    if found:
        raise NotAvailable(
            f"{model.name} has {' and '.join(found)}, which a model's YAML has no key for",
            "Use the config.json itself: --model takes it",
        )


def _group(group: Layers) -> dict[str, Any]:
    data: dict[str, Any] = {"count": group.repeats}
    if group.attention is not None:
        data["attention"] = _part(group.attention)
    if group.recurrence is not None:
        data["recurrence"] = _part(group.recurrence)
    if group.mlps:
        mlps = [_part(mlp) for mlp in group.mlps]
        data["mlp"] = mlps[0] if len(mlps) == 1 else mlps
    return data if group.norms == 2 else {**data, "norms": group.norms}


def _part(part: Any) -> dict[str, Any]:
    """Its kind and the fields that are not as by default."""
    defaults = part._field_defaults
    changed = {k: v for k, v in part._asdict().items() if k not in defaults or v != defaults[k]}
    return {"kind": kind_of(part), **changed}
