"""A claim to fill in, made from what a text prints."""

from __future__ import annotations

import re

from memwall.claims.printed import parse
from memwall.errors import MemwallError, UsageError, shown


def stub(words: str) -> str:
    """The YAML of a new claim for "AI=1,365 FLOP/byte" or "3.35 TB/s", with what can be said as comments.

    Raises:
        UsageError: there is no number in it.
    """
    name, number = _split(words)
    printed = parse(number)
    low, high = printed.interval()
    stands = f"{low:.10g} to {high:.10g} {printed.unit}".strip()
    identifier = re.sub(r"\W+", "_", name.lower()).strip("_") or "my_claim"
    if not identifier[0].isalpha():
        identifier = f"claim_{identifier}"
    return _TEMPLATE.format(
        identifier=identifier, printed=_quoted(number), stands=stands, name=name or "what it is"
    )


def _split(words: str) -> tuple[str, str]:
    """The name and the number: at = or :, else before the first digit."""
    name, sign, number = words.partition("=")
    if not sign:
        found = re.search(r"(?:[~≈<>≤≥$]\s*)?(?<![\w.])\d", words)
        if not found:
            raise UsageError(
                f"there is no number in '{shown(words)}'", 'For example: --new "AI=1,365 FLOP/byte"'
            )
        name, number = words[: found.start()], words[found.start() :]
    try:
        parse(number)
    except MemwallError as error:
        raise UsageError(error.message, error.hint) from None
    return name.strip(" :-"), number.strip()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_TEMPLATE = """\
  # One item of `claims:`. A whole file begins with
  #   text: my_text
  #   title: what is checked
  #   claims:
  - id: {identifier}
    where: "section, table or figure"
    label: {name}, in words of your own
    printed: {printed}  # stands for {stands}
    # unit: TB/s                    # if the text leaves the unit out, or means another
    # digits: 2                     # if its closing zeros are not digits
    # The right value: memwall's reports, units, and other claims and inputs by name.
    # More: memwall check --help
    compute: roofline("gemm", gpu="h100", m=4096, n=4096, k=4096).arithmetic_intensity
    # as_printed: flops / bytes     # how the text gets there, if that is not the right way
    verdict: holds  # or: holds as arithmetic, differs, contradicts, mixed, measured, not computable
    # reason: one sentence, for every verdict but holds
    # second_route: {{compute: 2*4096**3*FLOP / (100.7*MB), how: by hand, within_percent: 1}}
    # source: {{seen: "where an outside figure was read"}}
"""
