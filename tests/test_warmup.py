"""``cbrank warmup``: after it nothing has to be compiled."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tables import run

COMPILED = """
import importlib, pkgutil
from cbrank import kernels
def compiled():
    count = {}
    for _, name, _ in pkgutil.iter_modules(kernels.__path__):
        module = importlib.import_module(f"cbrank.kernels.{name}")
        for item in vars(module).values():
            if type(getattr(item, "_cache", None)).__name__ == "_KernelCache":
                count[f"{item.__module__}.{item.__name__}"] = len(item.signatures)
    return count
"""
ALL = f"""{COMPILED}
import io, sys
sys.path[:0] = [{str(Path(__file__).with_name("tools"))!r}]
import numpy as np, pandas as pd
from scipy import sparse
from cbrank import warmup
from learners import RANKERS, make
for _ in warmup.compile_all(warmup.steps()):
    pass
before = compiled()
print(sorted(name for name, count in before.items() if not count))
from click.testing import CliRunner
from cbrank.cli import main
for form in ("csv", "svm"):
    for scale in ("standard", "unit", "maxabs", "none"):
        for covariance in ("full", "diagonal"):
            with CliRunner().isolated_filesystem():
                text = "a,b,label\\n1,2,no\\n3,5,yes\\n" if form == "csv" else "-1 1:1\\n1 2:3\\n"
                open(f"rows.{{form}}", "w").write(text)
                options = ["--label", "label"] if form == "csv" else []
                for command in (["train", f"rows.{{form}}", "-o", "m", "--scale", scale,
                                 "--covariance", covariance, "--C", "0.1", *options],
                                ["update", "m", f"rows.{{form}}"], ["score", "m", f"rows.{{form}}"]):
                    result = CliRunner().invoke(main, command)
                    assert result.exit_code == 0, result.output
X = np.random.RandomState(0).standard_normal((70, 130))
for name in RANKERS:
    for rows in (X, np.asfortranarray(X[:, :3]), sparse.csr_matrix(X), pd.DataFrame(X[:, :2])):
        labels = np.arange(70) % 2
        make(name).set_params(n_passes=2).fit(rows, labels, sample_weight=np.ones(70)).predict(rows)
        ranker = make(name).partial_fit(rows, labels)
        if isinstance(rows, np.ndarray):
            for row in (rows[0], rows[1].astype(np.float32), rows[2].copy()):
                ranker.learn_one(row, 1).predict_proba(row.reshape(1, -1))
                ranker.predict(row.reshape(1, -1))
from cbrank.river import RankingClassifier
for name in RANKERS:
    model = RankingClassifier(make(name))
    for x, y in [(dict(a=1.0), True), (dict(a=2.0, b=3.0), False), (dict(b=1.0), True)]:
        model.learn_one(x, y)
        model.predict_one(x)
print(compiled() == before)
"""


def process(code_or_module, *arguments, **environment):
    return subprocess.run(
        [sys.executable, *code_or_module, *arguments],
        capture_output=True, text=True, check=True, timeout=300, env={**os.environ, **environment},
    )  # fmt: skip


COMPILED_NAMES = {"encoding.encode", "window_auc.slide"}


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled without Numba"
)
def test_every_kernel_is_compiled_in_the_only_form_there_is():
    missing, same = process(["-W", "ignore", "-c", ALL]).stdout.splitlines()
    assert missing == "[]"
    assert same == "True"


@pytest.mark.slow
def test_what_is_compiled_is_kept_where_it_says(tmp_path):
    cache, folder = tmp_path / "cache", tmp_path / "folder"
    folder.mkdir()
    command = [
        sys.executable,
        "-m",
        "cbrank",
        "warmup",
        "--only",
        "encoding,measuring",
        "--jobs",
        "2",
    ]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    if "PYTHONPATH" in environment:
        folders = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(part).resolve()) for part in folders)
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=folder, env=environment
    )
    found = re.fullmatch(r"Compiled in \d+\.\d s, kept in (.*)\.\n", said.stdout)
    assert found
    names = {path.name.partition("-")[0] for path in Path(found[1]).iterdir()}
    assert names == COMPILED_NAMES
    assert Path(found[1]).is_relative_to(cache)
    assert said.stderr == "Compiling\n"
    assert list(folder.iterdir()) == []


def test_an_unknown_step_is_a_usage_error():
    result = run("warmup", "--only", "cbr,svm")
    assert result.exit_code == 2
    assert "unknown step 'svm': there are cbr, oam, opauc" in result.stderr


def test_help_has_an_example():
    assert "cbrank warmup --only cbr,reading" in run("warmup", "-h").stdout
