"""What the names in a claim's computations mean: claims, of this text or another, and inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memwall.claims.claim import Claim, ClaimsFile, Input
from memwall.errors import FileError, nearest, shown

ENDS = ("low", "high")


class Library:
    """The claims of one or several texts; another that is named is read when it is needed."""

    def __init__(self, files: Sequence[ClaimsFile], load: Callable[[str], ClaimsFile]) -> None:
        self._texts = {file.text: file for file in files}
        self._claims = {claim.key: claim for file in files for claim in file.claims}
        self._load = load

    def find(self, claim: Claim, name: str) -> tuple[Claim | Input, str]:
        """What a name in a claim's computation means, and the end of a range that it asks for.

        Raises:
            FileError: neither a claim nor an input has that name.
        """
        file = self._texts[claim.text]
        if name in file.inputs:
            return file.inputs[name], ""
        first, _, rest = name.partition(".")
        if first in file.others:
            text = self._other(claim, first)
            first, _, rest = rest.partition(".")
        else:
            text = claim.text
        found = self._claims.get(f"{text}.{first}")
        if found is None or rest not in ("", *ENDS):
            near = nearest(name, [*file.inputs, *(each.id for each in file.claims)], limit=1)
            raise FileError(
                f"{claim.place}: {claim.id}: '{shown(name)}' is neither a claim nor an input nor a unit",
                f"Did you mean {near[0]}?" if near else "Names are inputs, claims of this file, or units",
            )
        return found, rest

    def claim(self, claim: Claim, name: str) -> Claim:
        """The claim that a name means.

        Raises:
            FileError: it means an input, or nothing.
        """
        found, _ = self.find(claim, name)
        if isinstance(found, Input):
            raise FileError(f"{claim.place}: {claim.id}: '{shown(name)}' is an input", "Name a claim")
        return found

    def described(self, key: str) -> str:
        """A claim for people: its name and where it stands."""
        claim = self._claims[key]
        return f"{claim.id} ({claim.where})"

    def _other(self, claim: Claim, name: str) -> str:
        """The name of another text, whose claims are read now if they have not been."""
        if name not in self._texts:
            file = self._load(self._texts[claim.text].others[name])
            if file.text != name:
                raise FileError(
                    f"{claim.place}: {file.file} is of the text '{file.text}', not of '{name}'",
                    f"Write {file.text}: in texts",
                )
            self._texts[name] = file
            self._claims |= {each.key: each for each in file.claims}
        return name
