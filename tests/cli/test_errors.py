"""Errors in their layer: the library names parameters, the command line names its options."""

import ast
import re
import sys
from pathlib import Path

import pytest
from commands import call, error

import cbrank
from cbrank.cli import COMMANDS
from cbrank.streams import Columns, open_stream

SOURCE = Path(cbrank.__file__).parent
FLAG = re.compile(rf"(?:^|\s)--[a-z][a-z-]+|\bcbrank (?:{'|'.join(COMMANDS)})\b")


def literals(tree):
    """Return the texts of a module that are no docstrings."""
    with_docs = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {id(node.body[0].value) for node in ast.walk(tree)
            if isinstance(node, with_docs) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node


def test_no_message_of_the_library_names_an_option_or_a_command():
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {node.value}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "cli" not in path.relative_to(SOURCE).parts
        for node in literals(ast.parse(path.read_text(encoding="utf-8")))
        if FLAG.search(node.value) and not re.fullmatch(r"--[a-z]+", node.value)  # a CSS variable
    ]
    assert found == []


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("age,city,clicked\n31,Oslo,no\n44,Rome,yes\n")
    (tmp_path / "rows.svm").write_text("1 1:2\n-1 1:1\n")
    (tmp_path / "zero.svm").write_text("1 0:2\n-1 1:1\n")
    (tmp_path / "one.svm").write_text("2 1:2\n")
    return tmp_path


TABLE = ("table.csv", "--label", "clicked")


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["table.csv"], "table.csv: which column is the label? Give --label."),
        (
            [*TABLE, "--scale", "none"],
            "name it in --categorical, as onehot or hash:BITS, else in --drop.",
        ),
        (
            [*TABLE, "--categorical", "city=onehot", "--max-width", "2"],
            "wider than --max-width 2; hash it, by hash:BITS in --categorical.",
        ),
        (["zero.svm"], "If indices start at 0 here, give --zero-based."),
        (["one.svm"], "say which label is the positive one by --positive."),
        (
            ["one.svm", "--label", "y"],
            "one.svm is svmlight text, which has no column 'y': leave out --label.",
        ),
    ],
)
def test_the_command_line_names_the_option_that_mends_it(here, arguments, cure):
    assert cure in error("train", *arguments, "-o", "m")


@pytest.mark.parametrize(
    ("columns", "cure"),
    [
        ({}, "which column is the label? Give `label=...`."),
        ({"label": "clicked"}, "name it in `categorical`, as onehot or hash:BITS, else in `drop`."),
    ],
)
def test_the_library_names_the_parameter(here, columns, cure):
    with pytest.raises(ValueError, match=re.escape(cure)):
        list(open_stream("table.csv", columns=Columns(**columns)))


def test_options_that_only_train_has_are_said_to_be_of_train(here):
    call("train", "rows.svm", "-o", "m", "--quiet")
    expected = "give --zero-based. --zero-based is an option of cbrank train."
    assert error("update", "m", "zero.svm").endswith(expected)
    _, err = call("update", "m", "zero.svm", "rows.svm", "--on-error", "skip")
    assert expected in err


def test_a_model_from_python_reads_its_own_labels_only(here):
    cbrank.save(cbrank.CBRanker().partial_fit([[0.0], [1.0]], [0, 1]), "python.model")
    assert error("update", "python.model", "rows.svm") == (
        "rows.svm, line 2, column 1: the label '-1' is neither '0' nor '1'."
    )


# Before the work begins ---------------------------------------------------------------------------


@pytest.fixture
def trained(here):
    call("train", "rows.svm", "-o", "m", "--quiet")
    (here / "folder").mkdir()
    return here


@pytest.mark.parametrize(
    ("arguments", "package", "sentence"),
    [
        (["evaluate", "m", "none.svm", "--roc", "a.png"], "matplotlib", "--roc needs matplotlib: pip install 'cbrank[report]'."),
        (["evaluate", "m", "none.svm", "--html", "a.html"], "matplotlib", "--html needs matplotlib: pip install 'cbrank[report]'."),
        (["inspect", "none", "--picture", "a.png"], "matplotlib", "--picture needs matplotlib: pip install 'cbrank[report]'."),
        (["export", "none", "--onnx", "a.onnx"], "onnx", "--onnx needs onnx: pip install 'cbrank[onnx]'."),
    ],
)  # fmt: skip
def test_a_missing_package_is_noticed_first(trained, monkeypatch, arguments, package, sentence):
    monkeypatch.setitem(sys.modules, package, None)
    assert error(*arguments) == sentence


@pytest.mark.parametrize("last", ["last.parquet", "last.csv.zst"])
def test_a_package_for_the_last_file_is_missed_before_the_first_is_read(trained, monkeypatch, last):
    magic = b"PAR1" if last.endswith("parquet") else b"\x28\xb5\x2f\xfd"
    (trained / last).write_bytes(magic + bytes(100))
    for module in ("pyarrow", "compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=rf"{last}.*pip install 'cbrank\["):
        open_stream(["rows.svm", last])
    assert error("train", "rows.svm", last, "-o", "new").startswith(last)


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "rows.svm", "-o"],
        ["train", "rows.svm", "-o", "new", "--checkpoint"],
        ["update", "m", "rows.svm", "-o"],
        ["score", "m", "rows.svm", "-o"],
        ["evaluate", "m", "rows.svm", "--roc"],
        ["evaluate", "m", "rows.svm", "--calibration"],
        ["inspect", "m", "--picture"],
        ["export", "m", "--onnx"],
    ],
)
def test_a_file_that_cannot_be_written_is_noticed_first(trained, monkeypatch, arguments):
    monkeypatch.setattr("cbrank.streams.open_stream", None)
    name = "none/file.png"
    folder = trained / "none"
    assert error(*arguments, name) == f"{name} cannot be written: there is no folder {folder}."
