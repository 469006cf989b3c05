"""The plan of the house, held: who may import whom, the law of units, short files, clean types."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "memwall").rglob("*.py"))

# A module may import from its own floor and from those below it.
FLOORS = [
    {"memwall.errors", "memwall.maths", "memwall.constant"},
    {"memwall.units"},
    {"memwall.dtypes", "memwall.catalog", "memwall.yamlfile"},
    {
        "memwall.schema",
        "memwall.whatif",
        "memwall.hardware",
        "memwall.program",
        "memwall.traffic",
        "memwall.l2",
        "memwall.retention",
        "memwall.occupancy",
        "memwall.access",
        "memwall.hierarchy",
    },
    {
        "memwall.ops",
        "memwall.bound",
        "memwall.tiles",
        "memwall.flash",
        "memwall.modelled",
        "memwall.fusion",
        "memwall.crossover",
    },
    {"memwall.links", "memwall.collectives", "memwall.nodes"},
    {"memwall.estimate"},
    {"memwall.models"},
    {"memwall.memory"},
    {"memwall.parallel"},
    {"memwall.reports"},
    {"memwall.verify", "memwall.explain", "memwall.diagnose"},
    {"memwall.render", "memwall.claims"},
    {"memwall.cli"},
]

LONGEST_FILE, LONGEST_FUNCTION = 300, 60


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor_of(module: str) -> int | None:
    room = ".".join(module.split(".")[:2])
    return next((number for number, rooms in enumerate(FLOORS) if room in rooms), None)


def imports_of(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names}
                if node.module == "memwall"
                else {node.module}
            )
    return {name for name in found if name.startswith("memwall.")}


def test_every_module_has_a_floor() -> None:
    homeless = [m for m in map(module_name, SOURCES) if floor_of(m) is None]
    assert homeless == ["memwall", "memwall.__main__"]


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_go_down_the_house(path: Path) -> None:
    floor = floor_of(module_name(path))
    if floor is None:  # the front doors: the package and its command
        return
    climbing = {name for name in imports_of(ast.parse(path.read_text())) if (floor_of(name) or 0) > floor}
    assert not climbing


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_powers_of_ten_and_two_stand_in_units_alone(path: Path) -> None:
    if path.name == "units.py":
        return
    tokens = list(tokenize.generate_tokens(io.StringIO(path.read_text()).readline))
    offending = []
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.type == tokenize.OP and token.string == "**" and before.string in ("2", "10"):
            offending.append((token.start[0], f"{before.string}**{after.string}"))
        if token.type == tokenize.NUMBER and is_power(token.string):
            offending.append((token.start[0], token.string))
    assert not offending


def is_power(text: str) -> bool:
    """1000 and up in steps of a thousand, 1024 and up in steps of 1024, or an exponent."""
    if "e" in text.lower() and not text.lower().startswith("0x"):
        return True
    number = ast.literal_eval(text)
    return number in {1000**i for i in range(1, 6)} | {1024**i for i in range(1, 5)}


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False) or ""
            lines = (node.end_lineno or 0) - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)
            assert lines <= LONGEST_FUNCTION, f"{node.name}: {lines} lines"


@pytest.mark.parametrize(
    "command", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]], ids=" ".join
)
def test_the_checkers_agree(command: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_package_exports_what_it_says() -> None:
    import memwall

    assert sorted(memwall.__all__) == sorted([*memwall._PUBLIC, "__version__"])
    assert all(getattr(memwall, name) is not None for name in memwall.__all__)


HEAVY = {"click", "numpy", "pydantic", "rich", "sympy", "yaml"}


def test_importing_memwall_imports_nothing_heavy() -> None:
    code = "import sys, memwall; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not loaded & HEAVY
    assert [name for name in loaded if name.startswith("memwall.")] == []
