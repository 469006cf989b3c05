"""The exact size of weights that lie beside a config.json: the shards' index, or the files' own headers.

A safetensors file begins with the length of its header (8 bytes, little-endian) and the header, JSON that
gives each tensor's dtype, shape and data_offsets. Source: the format's README,
huggingface/safetensors.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from memwall.errors import FileError, shown
from memwall.models.model import Model
from memwall.models.parameters import count
from memwall.models.storage import weight_bytes
from memwall.units import MEBI

INDEX = "model.safetensors.index.json"
LONGEST_HEADER_BYTES = 100 * MEBI
"""The format's own limit."""
_COPY = "Copy the file again, or delete it: the sizes then follow from config.json alone"


def beside(model: Model, folder: str) -> Model:
    """The model, with what the weights' files in its folder hold.

    Raises:
        FileError: an index or a header that is broken, or shards that are named, absent and not added up.
    """
    total = checkpoint_bytes(folder or ".")
    if total is None:
        return model
    counted = weight_bytes(model).total
    least = count(model).total // 8
    if total < least:
        raise FileError(
            f"{shown(folder or '.', 120)}: the weights' files hold {total:,} B, less than a bit a parameter",
            "Is the download whole? Copy the missing files, or move these away",
        )
    notes = [f"the weights' files hold {total:,} B"]
    if total > counted:
        more = f"{total - counted:,} B more than is counted: wider formats, or modules that decoding skips"
        notes = [f"{notes[0]}, {more}"]
    elif total < counted:
        less = f"{counted - total:,} B less than the formula: what is in memory is taken from the files"
        notes = [f"{notes[0]}, {less}"]
    return model._replace(checkpoint_bytes=total, notes=(*model.notes, *notes))


def checkpoint_bytes(folder: str) -> int | None:
    """Bytes of all tensors in a folder's safetensors files; None if there are none.

    Raises:
        FileError: as `beside` says.
    """
    index = os.path.join(folder, INDEX)
    if os.path.exists(index):
        return _indexed(index, folder)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    except OSError:
        return None
    _check_shards(names, folder)
    return sum(file_bytes(os.path.join(folder, name)) for name in names) if names else None


def _check_shards(names: list[str], folder: str) -> None:
    """Files that say how many they are must be so many: model-00001-of-00004.safetensors."""
    for name in names:
        total = re.search(r"-of-(\d+)\.safetensors$", name)
        there = [other for other in names if total and other.endswith(total[0])]
        if total and len(there) < int(total[1]):
            raise FileError(
                f"{shown(os.path.join(folder, name), 120)}: {len(there)} of {int(total[1])} shards are there",
                "Copy the others beside it, or their index, or move these away",
            )


def file_bytes(path: str) -> int:
    """Bytes of the tensors in one safetensors file, from its header.

    Raises:
        FileError: not such a file, or cut off within its header.
    """
    named = shown(path, 120)
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= LONGEST_HEADER_BYTES:
                raise FileError(
                    f"{named}: not a safetensors file: its header would be {length} bytes long", _COPY
                )
            header = json.loads(file.read(length))
    except OSError as error:
        raise FileError(f"{named}: cannot be read: {error.strerror}", _COPY) from None
    except (ValueError, RecursionError):
        raise FileError(f"{named}: the header is not JSON; is the file cut off?", _COPY) from None
    if not isinstance(header, dict):
        raise FileError(f"{named}: the header is not an object", _COPY)
    return sum(_tensor_bytes(name, entry, named) for name, entry in header.items() if name != "__metadata__")


def _tensor_bytes(name: str, entry: Any, where: str) -> int:
    offsets = entry.get("data_offsets") if isinstance(entry, Mapping) else None
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(isinstance(each, int) for each in offsets)
        or not 0 <= offsets[0] <= offsets[1]
    ):
        raise FileError(f"{where}: {shown(name)}.data_offsets must be [begin, end]", _COPY)
    return int(offsets[1] - offsets[0])


def _indexed(index: str, folder: str) -> int:
    """What the index adds up to; else the shards' headers."""
    data = _index(index)
    metadata = data.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    named = shown(index, 120)
    if total is not None:
        whole = isinstance(total, int | float) and not isinstance(total, bool) and total == int(total)
        if not whole or total <= 0:
            raise FileError(
                f"{named}: metadata.total_size must be a whole number, not {shown(repr(total))}", _COPY
            )
        return int(total)
    shards = data.get("weight_map")
    if not isinstance(shards, Mapping) or not shards:
        raise FileError(f"{named}: neither metadata.total_size nor a weight_map", _COPY)
    files = sorted({str(name) for name in shards.values()})
    absent = [name for name in files if not os.path.exists(os.path.join(folder, name))]
    if absent:
        raise FileError(
            f"{named}: metadata.total_size is missing, and so {'is' if len(absent) == 1 else 'are'} "
            f"{shown(', '.join(absent), 80)}, named in weight_map",
            "Add total_size, or copy the shards beside the index",
        )
    return sum(file_bytes(os.path.join(folder, name)) for name in files)


def _index(path: str) -> Mapping[str, Any]:
    named = shown(path, 120)
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise FileError(f"{named}: cannot be read: {error.strerror}", _COPY) from None
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise FileError(f"{named}:{line}: not JSON; is the file cut off?", _COPY) from None
    if not isinstance(data, dict):
        raise FileError(f"{named}:1: must be an object: {{...}}", _COPY)
    return data
