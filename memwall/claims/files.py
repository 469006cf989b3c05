"""Reading claims and documents: UTF-8, or a fault that names the line."""

from __future__ import annotations

from memwall.errors import FileError, shown
from memwall.units import MEBI

LARGEST_BYTES = 16 * MEBI
CLAIMS_ENDINGS = (".yaml", ".yml")


def read_text(path: str) -> str:
    """A file's text, its line ends as they are.

    Raises:
        FileError: missing, a folder, too large, not readable, or not UTF-8, then with the line.
    """
    named = shown(path, 120)
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise FileError(f"{named}: no such file", "Check the name: ls") from None
    except IsADirectoryError:
        raise FileError(f"{named}: is a folder, not a file", f"Name the files in it: {named}/*.md") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a file's name"
        raise FileError(f"{named}: cannot be read: {why}", f"Check its permissions: ls -l {named}") from None
    if len(data) > LARGEST_BYTES:
        raise FileError(f"{named}: larger than 16 MiB", "Is it a text file?")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FileError(f"{named}:{line}: not UTF-8 text", "Save the file as UTF-8") from None


def is_claims(path: str) -> bool:
    """Whether a file is of claims, by its ending; any other is a document."""
    return path.lower().endswith(CLAIMS_ENDINGS)
