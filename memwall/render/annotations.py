"""Judged claims for CI: JUnit XML, and GitHub's annotations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from memwall.claims.claim import ClaimsFile
from memwall.claims.verdict import Judged
from memwall.errors import FileError
from memwall.render.check import right_text

_PLACE = re.compile(r"(?P<file>[^\n]+?):(?:(?P<line>\d+):)? (?P<said>.*)", re.DOTALL)
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def junit(
    files: Sequence[ClaimsFile],
    judged: Sequence[Judged],
    failing: Sequence[Judged],
    faults: Sequence[FileError] = (),
) -> str:
    """One suite a file, one case a claim; a failing claim is a failure, a file that is not read an error."""
    failed = {each.claim.key for each in failing}
    suites = []
    for file in files:
        mine = [each for each in judged if each.claim.text == file.text]
        wrong = sum(each.claim.key in failed for each in mine)
        cases = [_case(each, file, each.claim.key in failed) for each in mine]
        name = quoteattr(file.file)
        suites.append(
            f'  <testsuite name={name} tests="{len(mine)}" failures="{wrong}" errors="0" skipped="0">\n'
            f"{''.join(cases)}  </testsuite>\n"
        )
    suites += [_not_read(fault) for fault in faults]
    totals = f'tests="{len(judged) + len(faults)}" failures="{len(failed)}" errors="{len(faults)}"'
    return f'{_HEAD}<testsuites name="memwall check" {totals}>\n{"".join(suites)}</testsuites>\n'


def _where(fault: FileError) -> tuple[str, str, str]:
    """A fault's file, its line, and what is wrong there."""
    found = _PLACE.fullmatch(fault.message)
    said = f"{found['said'] if found else fault.message}. {fault.hint}"
    return (found["file"] if found else "", (found["line"] if found else None) or "1", said)


def _not_read(fault: FileError) -> str:
    file, line, said = _where(fault)
    name, place = quoteattr(file or "memwall check"), f"line={quoteattr(line)}"
    return (
        f'  <testsuite name={name} tests="1" failures="0" errors="1" skipped="0">\n'
        f"    <testcase classname={name} name={quoteattr(f'line {line}')} file={name} {place}>\n"
        f'      <error type="bad-file" message={quoteattr(said)}>{escape(str(fault))}</error>\n'
        "    </testcase>\n  </testsuite>\n"
    )


def _case(judged: Judged, file: ClaimsFile, failed: bool) -> str:
    claim = judged.claim
    place = f"file={quoteattr(claim.place.file)} line={quoteattr(str(claim.place.line))}"
    head = f"    <testcase classname={quoteattr(file.text)} name={quoteattr(claim.id)} {place}"
    if not failed:
        return f"{head}/>\n"
    said, kind = message(judged), quoteattr(judged.verdict)
    body = escape(f"{claim.place}: {claim.where}: {said}")
    failure = f"<failure type={kind} message={quoteattr(said)}>{body}</failure>"
    return f"{head}>\n      {failure}\n    </testcase>\n"


def github(judged: Sequence[Judged], failing: Sequence[Judged], faults: Sequence[FileError] = ()) -> str:
    """An error for each failing claim and each fault, at its file and line, and a notice with the totals."""
    lines = []
    for fault in faults:
        file, line, said = _where(fault)
        place = f"file={_property(file)},line={line}"
        lines.append(f"::error {place},title={_property('memwall: not read')}::{_data(said)}")
    for each in failing:
        claim = each.claim
        place = f"file={_property(claim.place.file)},line={claim.place.line},col={claim.place.column}"
        lines.append(f"::error {place},title={_property(f'memwall: {claim.id}')}::{_data(message(each))}")
    passed = len(judged) - len(failing)
    lines.append(f"::notice title=memwall check::{passed} of {len(judged)} claims as they should be")
    return "\n".join(lines) + "\n"


def message(judged: Judged) -> str:
    """What is wrong with a claim, in one line."""
    claim = judged.claim
    now = f"prints {claim.printed.text}, right is {right_text(judged)}"
    if judged.route_agrees is False:
        return f"{claim.label}: the second route does not give the right value"
    if judged.as_recorded or claim.in_document:
        return f"{claim.label}: {now} ({judged.verdict})"
    return f"{claim.label}: {now}; was {claim.recorded}, is {judged.verdict}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
