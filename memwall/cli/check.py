"""memwall check."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import click

from memwall.cli.output import Output, emit, write
from memwall.errors import FileError, UsageError, shown

EPILOG = """\b
Examples:
  memwall check
  memwall check chapter4 --where 4.8 --explain
  memwall check article --format github
  memwall check README.md --strict
  memwall check README.md --fix
  memwall check --new "AI=1,365 FLOP/byte"
  memwall check --coverage chapter.txt chapter4

\b
Beside a number in Markdown: <!-- memwall: gpu("h100").ridge_points.bf16 -->
A computation: numbers, units, + - * / **, min max sqrt ceil floor log, names of claims and
inputs, and reports with a key of their --json: roofline("gemv", gpu="h100").bound_time_s

\b
FILE: claims (.yaml), or a document with such comments; chapter4 and article come with memwall.
Exit code 0: every verdict is as recorded (with --strict: and everything holds); 1: not so.
"""

FORMATS = ("text", "json", "csv", "markdown", "github", "junit")


@click.command("check", epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[FILE...]")
@click.option(
    "--where", help="only a section and those in it (4.8), a figure or table, or one claim by its id"
)
@click.option("--verdict", help="only these, e.g. differs,mixed")
@click.option("--explain", is_flag=True, help="each claim's derivation, with the numbers in it")
@click.option("--all", "every", is_flag=True, help="list the claims that hold, too")
@click.option("--strict", is_flag=True, help="fail on anything that does not hold, recorded or not")
@click.option("--fix", is_flag=True, help="put the wrong numbers of Markdown files right, in place")
@click.option("--new", metavar="TEXT", help='a claim to fill in, e.g. "AI=1,365 FLOP/byte"')
@click.option("--coverage", metavar="TEXTFILE", help="the numbers of a text that no claim covers")
@click.option("--format", "form", type=click.Choice(FORMATS), help="default: text")
@click.option("--json", "as_json", is_flag=True, help="short for --format json")
@click.option(
    "-o", "--output", metavar="FILE", help="write there; .json, .csv, .md and .xml choose the format"
)
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="colour on a terminal"
)
def command(paths: tuple[str, ...], new: str | None, coverage: str | None, fix: bool, **options: Any) -> int:
    """Printed numbers against what they should be: claims files, and numbers in Markdown."""
    output = Output(*(options.pop(key) for key in Output._fields))
    output = _by_suffix(output)
    if sum((new is not None, coverage is not None, fix)) > 1:
        raise UsageError("--new, --coverage and --fix do different things", "Use one of them")
    if new is not None:
        from memwall.claims.stub import stub

        write(output, stub(new))
        return 0
    if coverage is not None:
        return _coverage(output, coverage, paths, options["strict"])
    if fix:
        return _fix(paths)
    return _check(output, paths, **options)


def _by_suffix(output: Output) -> Output:
    xml = (output.output or "").lower().endswith(".xml")
    return output._replace(form="junit") if xml and not output.form and not output.as_json else output


def _check(
    output: Output,
    paths: Sequence[str],
    where: str | None,
    verdict: str | None,
    explain: bool,
    every: bool,
    strict: bool,
) -> int:
    from memwall.claims import docket as dockets

    faults: list[FileError] = []
    in_place = dockets.at(where) if where else lambda claim: True
    found, unsound = dockets.judge_sound(_read(paths, faults), _claims, in_place)
    faults += unsound  # a file that is not read must not hide what others say
    if not found.files and output.format not in ("github", "junit"):
        _tell(faults[:-1])
        raise faults[-1]
    if where and not found.judged and not faults:
        raise UsageError(f"no claim stands at '{shown(where)}'", "See memwall check --all")
    found = found.of(_verdicts(verdict)) if verdict else found
    failing = found.failing(strict)
    _show(output, found, failing, explain, every, faults)
    _tell(faults)
    return FileError.exit_code if faults else 1 if failing else 0


def _tell(faults: Sequence[FileError]) -> None:
    for fault in faults:
        click.echo(f"error: {fault}", err=True)


def _show(
    output: Output,
    found: Any,
    failing: Sequence[Any],
    explain: bool,
    every: bool,
    faults: Sequence[FileError],
) -> None:
    from memwall.claims.explain import derivation
    from memwall.render import annotations, check, data

    def records() -> list[data.Record]:
        made = [check.record(each, column=each.claim.in_document) for each in found.judged]
        if not explain:
            return made
        return [
            {**each, "derivation": derivation(found.court, judged)}
            for each, judged in zip(made, found.judged, strict=True)
        ]

    makers: dict[str, Callable[[], str]] = {
        "json": lambda: (
            json.dumps(
                {"schema": data.SCHEMA, "claims": records()}, indent=2, allow_nan=False, ensure_ascii=False
            )
            + "\n"
        ),
        "github": lambda: annotations.github(found.judged, failing, faults),
        "junit": lambda: annotations.junit(found.files, found.judged, failing, faults),
    }
    form = output.format
    if form in makers:
        write(output, makers[form]())
    elif form == "markdown" and not explain:
        emit(output, records, lambda: check.errata(found))
    else:
        emit(output, records, lambda: check.page(found, explain, every))


def _read(paths: Sequence[str], faults: list[FileError] | None = None) -> list[Any]:
    """The claims of every file, and of documents; without paths the shipped claims.

    Faulty files are added to `faults`, where it is given, instead of ending the run.
    """
    from memwall.claims import directives, docket, load
    from memwall.claims.files import is_claims, read_text

    if not paths:
        return [load.from_entry(entry) for entry in docket.shipped_files()]
    files = []
    for path in dict.fromkeys(paths):
        try:
            if is_claims(path) or docket.shipped_file(path):
                files.append(_claims(path))
            else:
                files.append(directives.read(read_text(path), path).claims)
        except FileError as fault:
            if faults is None:
                raise
            faults.append(fault)
    texts = [file.text for file in files]
    twice = next((file for file in files if texts.count(file.text) > 1), None)
    if twice:
        raise UsageError(f"two files are of the text '{shown(twice.text)}'", "Give each its own text:")
    return files


def _claims(path: str) -> Any:
    """A file of claims, or one that comes with memwall by its name."""
    from memwall.claims import docket, load

    shipped = docket.shipped_file(path)
    return load.from_entry(shipped) if shipped else load.load(path)


def _verdicts(words: str) -> set[str]:
    from memwall.claims.claim import VERDICTS

    wanted = {word.strip().replace("-", " ") for word in words.split(",") if word.strip()}
    unknown = wanted - set(VERDICTS)
    if unknown or not wanted:
        raise UsageError(
            f"no verdict '{shown(next(iter(unknown), words))}'", f"There are: {', '.join(VERDICTS)}"
        )
    return wanted


def _coverage(output: Output, path: str, paths: Sequence[str], strict: bool) -> int:
    from memwall.claims.coverage import coverage
    from memwall.claims.files import read_text
    from memwall.render import check

    files = _read(paths)
    found = coverage(read_text(path), path, files)
    if output.format in ("github", "junit"):
        raise UsageError(f"--coverage has no {output.format} format", "Try --format json")
    emit(output, lambda: [check.coverage_record(found)], lambda: check.coverage_page(found))
    return 1 if strict and found.uncovered else 0


def _fix(paths: Sequence[str]) -> int:
    """Read, compute and recheck everything first, so that a faulty file leaves every file as it is."""
    from memwall.claims import directives, docket
    from memwall.claims.files import is_claims, read_text
    from memwall.claims.fixing import fixed

    claims = next((path for path in paths if is_claims(path)), None)
    if claims or not paths:
        named = f"{shown(claims)} is of claims" if claims else "no file is named"
        raise UsageError(
            f"--fix puts numbers of Markdown files right, and {named}", "memwall check README.md --fix"
        )
    documents = [directives.read(read_text(path), path) for path in dict.fromkeys(paths)]
    found = docket.judge([each.claims for each in documents], _claims, lambda claim: True)
    judged = {each.claim.key: each for each in found.judged}
    results = [fixed(each, judged) for each in documents]
    left = 0
    for document, result in zip(documents, results, strict=True):
        if result.rewritten:
            _rewrite(document.file, result.text)
            click.echo(f"{document.file}: {result.rewritten} put right", err=True)
        for each in result.left:
            left += 1
            printed = each.claim.printed.text
            why = "is a range, a limit, or in too large a unit"
            click.echo(f"{each.claim.place}: {shown(printed)} {why}: correct it by hand", err=True)
    return 1 if left else 0


def _rewrite(path: str, text: str) -> None:
    """The file's new text in one step, with its permissions."""
    real = os.path.realpath(path)
    partial = f"{real}.{os.getpid()}.partial"
    try:
        with open(partial, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        shutil.copymode(real, partial)
        os.replace(partial, real)
    except OSError as error:
        raise UsageError(
            f"{shown(path, 120)}: cannot be written: {error.strerror}", "Check its permissions"
        ) from None
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
