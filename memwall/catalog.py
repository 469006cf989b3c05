"""Finding a GPU's or a model's file by the name that people type.

One entity is one YAML file; its canonical name is the file's name, and its aliases stand in the
file. Folders are searched in this order: MEMWALL_PATH (each entry holding hardware/ or
configs/models/), then the shipped data: inside the installed package, or beside it in a checkout.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from memwall.errors import FileError, UnknownName, shown
from memwall.units import MEBI

_HERE = os.path.dirname(os.path.abspath(__file__))
_VENDORS = "nvidia amd intel google aws apple geforce tesla instinct radeon".split()  # noqa: SIM905
_VENDORS += "meta meta-llama mistralai openai qwen deepseek-ai".split()  # noqa: SIM905
# Compiled when used, which the plain case does not: five patterns would be a tenth of its time.
_MEMORY = r"-?\b(\d+)g(?:i?b)?(?=-|$)"
_MEMORY_TYPE = r"-(?:hbm\d?e?|gddr\d?x?)$"
_NAME_LINE = r"(?m)^name:[ \t]*(.*)$"
_TITLE_LINE = r"(?m)^title:[ \t]*(.*)$"


Item = TypeVar("Item")


class Entry(NamedTuple):
    """A file of the catalogue."""

    name: str
    text: str
    where: str
    """The file's path, for messages and for `show`."""
    user: bool
    """The user's own file: checked against the schema before use."""


class Catalog(NamedTuple):
    """All entities of one kind."""

    kind: str
    folder: str
    listing: str
    """The command that lists them."""
    example: str
    """The command that prints one of their files."""
    remarks: str = ""
    """Parts of names that make no difference here."""

    def names(self) -> list[str]:
        """The canonical names, sorted."""
        return sorted({name for folder, _ in self._folders() for name in _list(folder)})

    def find(self, name: str) -> Entry:
        """The entity of that name, alias or path.

        Raises:
            UnknownName: no such entity; names the nearest.
            FileError: a path that cannot be read.
        """
        if is_path(name):
            return self._file(name)
        entry = self._exact(name)  # the plain case looks into no other file
        entry = entry or self._by_any_spelling(self._spellings(name))
        if entry:
            return entry
        names = self._all_names()
        raise UnknownName(self.kind, name, names, self.listing, names)

    def entries(self) -> Iterator[Entry]:
        """Every entity, the first file of each name."""
        for name in self.names():
            entry = self._exact(name)
            if entry:
                yield entry

    def read_each(self, read: Callable[[Entry], Item]) -> tuple[list[Item], list[FileError]]:
        """Every entity as `read` makes it, and why the user's broken ones are not among them.

        A broken file matters only when it is asked for by name.
        """
        items, errors = [], []
        for name in self.names():
            try:
                entry = self._exact(name)
                if entry:
                    items.append(read(entry))
            except FileError as error:
                errors.append(error)
        return items, errors

    def _file(self, path: str) -> Entry:
        """A user's own file."""
        if not os.path.lexists(path):
            kind = self.kind.lower()
            raise FileError(
                f"{shown(path, 120)}: no such file", f"One to edit: {self.example} > my-{kind}.yaml"
            )
        return read_file(path)

    def _exact(self, key: str) -> Entry | None:
        for folder, user in self._folders():
            if key in _list(folder):
                text, where = _read(folder, f"{key}.yaml"), f"{folder}/{key}.yaml"
                if user:
                    _check_name(key, text, where)
                return Entry(key, text, where, user)
        return None

    def _by_any_spelling(self, keys: Sequence[str]) -> Entry | None:
        """The first that is known as spelt, then without the memory's size; and then both without dashes."""
        known = self._known()
        joined: dict[str, str] = {}
        for spelling, name in known.items():
            joined.setdefault(_joined(spelling), name)

        def as_spelt(key: str) -> Entry | None:
            return self._exact(known.get(key, key))

        def without_dashes(key: str) -> Entry | None:
            name = joined.get(_joined(key))
            return self._exact(name) if name else None

        ways = [way for find in (as_spelt, without_dashes) for way in (find, _sized(find))]
        return next((entry for way in ways for key in keys if (entry := way(key))), None)

    def _known(self) -> dict[str, str]:
        """Every spelling and the name that it means: names before aliases before titles."""
        entries = self._readable()
        known = {entry.name: entry.name for entry in entries}
        for entry in entries:
            for alias in aliases(entry.text):
                known.setdefault(alias, entry.name)
        for entry in entries:
            known.setdefault(normalise(_line_of(_TITLE_LINE, entry.text)), entry.name)
        return known

    def _spellings(self, name: str) -> list[str]:
        """The name, then without remarks, without vendor words, without the memory's type."""
        key = normalise(name)
        plain = re.sub(self.remarks, "", key) if self.remarks else key
        keys = [k for key in (key, plain) for k in (key, *_without_vendor(key))]
        return list(dict.fromkeys([*keys, *(re.sub(_MEMORY_TYPE, "", key) for key in keys)]))

    def _all_names(self) -> dict[str, str]:
        """Names and aliases, and the name that each stands for."""
        entries = self._readable()
        return {known: entry.name for entry in entries for known in (entry.name, *aliases(entry.text))}

    def _readable(self) -> list[Entry]:
        return self.read_each(lambda entry: entry)[0]

    def _folders(self) -> list[tuple[Any, bool]]:
        """Where to look, first match first, and whether the folder is the user's own."""
        extra = [path for path in os.environ.get("MEMWALL_PATH", "").split(os.pathsep) if path]
        return [(f"{path}/{self.folder}", True) for path in extra] + [(shipped(self.folder), False)]


HARDWARE = Catalog("GPU", "hardware", "memwall gpu list", "memwall gpu show h100 --yaml")
MODELS = Catalog(
    "model",
    "configs/models",
    "memwall model list",
    "memwall model show llama3-8b --yaml",
    remarks=r"-(?:instruct|it|chat|hf)(?=-|$)",
)


def normalise(name: str) -> str:
    """A name as the catalogue spells it: lower-case kebab, without remarks; 80 GB is 80gb.

    >>> normalise("A100-SXM4-40 GB (see paper)"), normalise("RTX 3090"), normalise("M1 7\u2011Core GPU")
    ('a100-sxm4-40gb', 'rtx-3090', 'm1-7-core-gpu')
    """
    plain = re.sub(r"\(.*?\)|@.*", "", name.lower())
    kebab = re.sub(r"[\s_/\u2010-\u2015-]+", "-", plain).strip("-")
    return re.sub(r"(?<=\d)-(?=gi?b(?:-|$))", "", kebab)


def aliases(text: str) -> list[str]:
    """The aliases in a file's text, without parsing the YAML: they stand on one line by rule."""
    _, found, rest = f"\n{text}".partition("\naliases: [")
    line = rest.partition("\n")[0].partition("]")[0] if found else ""
    return [alias.strip(" \"'") for alias in line.split(",") if alias.strip()]


def is_path(name: str) -> bool:
    """Whether a name means a file of the user's own."""
    return name.endswith((".yaml", ".yml", ".json")) or (os.sep in name and os.path.exists(name))


def read_file(path: str) -> Entry:
    """A user's own file.

    Raises:
        FileError: missing, a folder, not text, or not readable.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    return Entry(name, _text_of(path), path, user=True)


def _text_of(path: str) -> str:
    """A file's text; one byte beyond the largest file that is parsed, so that the parser can refuse it."""
    named = shown(path, 120)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(MEBI + 1)
    except FileNotFoundError:
        raise FileError(f"{named}: no such file", "Check the name and the folder") from None
    except IsADirectoryError:
        raise FileError(f"{named}: is a folder, not a file", "Name the .yaml file in it") from None
    except UnicodeDecodeError:
        raise FileError(f"{named}: not UTF-8 text", "Save it as UTF-8, or name the .yaml file") from None
    except OSError as error:
        raise FileError(
            f"{named}: cannot be read: {error.strerror}", f"Check its permissions: ls -l {named}"
        ) from None


def _joined(key: str) -> str:
    return key.replace("-", "")


def _sized(find: Callable[[str], Entry | None]) -> Callable[[str], Entry | None]:
    """H100-SXM5-80GB is h100-sxm5 if that has 80 GB: a size may state, not contradict."""

    def find_by_size(key: str) -> Entry | None:
        size = re.search(_MEMORY, key)
        entry = find(key[: size.start()] + key[size.end() :]) if size else None
        fits = entry and size and re.search(rf"capacity_g[ib]+: {size[1]}\b", entry.text)
        return entry if fits else None

    return find_by_size


def _check_name(name: str, text: str, where: str) -> None:
    """A file is found by its name and called by its `name:`; two would be one too many."""
    own = _line_of(_NAME_LINE, text)
    if own and own != name:
        line = text[: text.index("name:")].count("\n") + 1
        raise FileError(
            f"{shown(where, 120)}:{line}: name is '{shown(own)}', and the file's name is '{shown(name)}'",
            f"Write name: {shown(name)}, or rename the file to {shown(own)}.yaml",
        )


def _line_of(pattern: str, text: str) -> str:
    """A plain value on a line of its own, without parsing the YAML."""
    found = re.search(pattern, text)
    return found[1].partition(" #")[0].strip(" \"'\r") if found else ""


def _without_vendor(key: str) -> Iterator[str]:
    """meta-llama-llama-3-8b without meta-llama and without meta: both are makers' names."""
    for vendor in _VENDORS:
        if key.startswith(f"{vendor}-"):
            rest = key[len(vendor) + 1 :]
            yield rest
            yield from _without_vendor(rest)


def shipped(folder: str) -> Any:
    """The shipped data's folder: a path, or a Traversable when memwall runs from a zip file."""
    for root in (f"{_HERE}/_data", os.path.dirname(_HERE)):
        if os.path.isdir(f"{root}/{folder}"):
            return f"{root}/{folder}"
    from importlib.resources import files  # only from a zip file: costs a fifth of a whole run

    return files("memwall").joinpath("_data", *folder.split("/"))


def shipped_text(path: str) -> str:
    """The text of one shipped data file, such as 'hardware/standards/memory.yaml'."""
    folder, _, name = path.rpartition("/")
    return _read(shipped(folder), name)


def shipped_names(folder: str) -> list[str]:
    """The shipped YAML files of a folder, without their ending."""
    return _list(shipped(folder))


def _list(folder: Any) -> list[str]:
    try:
        names = os.listdir(folder) if isinstance(folder, str) else [item.name for item in folder.iterdir()]
    except OSError:  # missing, not a folder, or closed to this user: nothing to find there
        return []
    return [name[:-5] for name in names if name.endswith(".yaml") and not name.startswith(".")]


def _read(folder: Any, name: str) -> str:
    if isinstance(folder, str):
        return _text_of(f"{folder}/{name}")
    return str(folder.joinpath(name).read_text("utf-8"))
