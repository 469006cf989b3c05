"""Every public name is explained, and every example in the explanations is true."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import memwall

PACKAGE = Path(memwall.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = [
    "memwall",
    *(m.name for m in pkgutil.walk_packages(memwall.__path__, "memwall.") if not m.name.endswith("__main__")),
]
DOCUMENTED = [name for name in MODULES if not name.startswith("memwall.verify")]  # needs a GPU


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_docstrings_are_true(name: str) -> None:
    failed, _ = doctest.testmod(load(name), verbose=False, raise_on_error=False)
    assert failed == 0


def test_there_are_examples_to_run() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = {name: sum(len(test.examples) for test in finder.find(load(name))) for name in DOCUMENTED}
    assert {"memwall", "memwall.maths", "memwall.dtypes", "memwall.ops.attention"} <= {
        n for n, e in examples.items() if e
    }


def test_the_public_roofline_may_be_called_more_than_once() -> None:
    for _ in range(2):
        assert memwall.roofline("gemv", gpu="h100").regime == "memory-bound"


@pytest.mark.parametrize("name", memwall.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(memwall, name)
    assert name == "__version__" or callable(getattr(memwall, name))


def undocumented(path: Path) -> list[str]:
    """Public functions, methods and classes without a docstring, and the module itself."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    missing = [] if ast.get_docstring(module) else ["the module"]
    scopes: list[tuple[str, ast.Module | ast.ClassDef]] = [("", module)]
    while scopes:
        prefix, scope = scopes.pop()
        for node in scope.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if node.name.startswith("_"):
                continue
            if not ast.get_docstring(node):
                missing.append(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                scopes.append((f"{prefix}{node.name}.", node))
    return missing


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_public_name_has_a_docstring(path: Path) -> None:
    assert undocumented(path) == []


def test_the_search_for_docstrings_sees_functions_methods_and_classes(tmp_path: Path) -> None:
    path = tmp_path / "bare.py"
    path.write_text("def f(): ...\nclass C:\n    def m(self): ...\n    def _p(self): ...\n", encoding="utf-8")
    assert undocumented(path) == ["the module", "f", "C", "C.m"]
