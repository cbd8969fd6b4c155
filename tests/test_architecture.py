"""The shape of the package: names of files, chains of imports, who reads what is private."""

import ast
import collections
import functools
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import cbrank

SOURCE = Path(cbrank.__file__).parent
LONGEST_CHAIN = 12


def name_of(path: Path) -> str:
    parts = [*path.relative_to(SOURCE.parent).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in SOURCE.rglob("*.py")}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is executed when a module is imported."""
    for child in ast.iter_child_nodes(node):
        types_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not types_only and not isinstance(child, ast.FunctionDef):
            yield child
            yield from statements(child)


def imported(module: str) -> set[str]:
    return named(module, statements(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


def named(module: str, nodes: Iterable[ast.AST]) -> set[str]:
    """Return the modules of the package that some nodes of a module import."""
    found = set[str]()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & MODULES.keys()) or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return (found & MODULES.keys()) - {module}


@functools.cache
def chain(module: str) -> tuple[str, ...]:
    return (module, *max(map(chain, imported(module)), key=len, default=()))


@pytest.mark.parametrize("module", sorted(MODULES))
def test_chains_of_imports_are_short(module):
    assert len(chain(module)) <= LONGEST_CHAIN, " > ".join(chain(module))


def every_import(module: str) -> set[str]:
    """Return what a module imports anywhere: at its top, in functions and for types."""
    return named(module, ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


def test_no_modules_import_each_other_in_a_circle():
    graph = {module: every_import(module) for module in MODULES}
    while leaves := {module for module, others in graph.items() if not others & graph.keys()}:
        graph = {module: others for module, others in graph.items() if module not in leaves}
    assert graph == {}


def test_no_file_name_is_used_more_than_twice():
    names = collections.Counter(path.name for path in MODULES.values())
    del names["__init__.py"]
    assert [name for name, count in names.items() if count > 2] == []


def test_the_linter_refuses_private_attributes_of_others(tmp_path):
    """What `make lint` runs over the package, run over a file that breaks the rule."""
    bad = tmp_path / "src" / "cbrank" / "merging" / "bad.py"
    bad.parent.mkdir(parents=True)
    bad.write_text('"""Bad."""\n\n\ndef look(ranker):\n    """Look."""\n    return ranker._model\n')
    settings = SOURCE.parents[1] / "pyproject.toml"
    asked = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--config",
        str(settings),
        str(bad),
    ]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert "SLF001" in told.stdout
    assert told.returncode == 1


# The estimator, the checks of its input, the loop over blocks and the kernel; with C="auto" the scales of columns
# and one thread for products of matrices and a sample of rows besides; with a table what its columns are.
@pytest.mark.parametrize(
    ("walk", "files", "functions", "back"),
    [("partial_fit", 4, 27, 0), ("auto", 7, 39, 4), ("table", 15, 60, 14)],
)
def test_partial_fit_reaches_its_kernel_in_few_files(walk, files, functions, back):
    script = Path(__file__).parent / "tools" / "walks.py"
    asked = [sys.executable, str(script), "--only", walk]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    counts = [int(count.split()[0]) for count in told.rpartition(": ")[2].split(", ")]
    assert all(map(int.__le__, counts, (files, functions, back))), told
