"""Starting: what is imported, compiled, cached and said."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cbrank

SOURCE = Path(cbrank.__file__).parent
FIT = """
import numpy as np
from cbrank import UniExpRanker
rng = np.random.RandomState(0)
X, y = rng.standard_normal((60, 4)), np.arange(60) % 2
print(repr(UniExpRanker(random_state=0).fit(X, y).coef_.tolist()))
"""
SMALL = """
import sys
sys.path[:0] = [{tests!r}]
import numpy as np
from scipy import sparse
from learners import RANKERS, SPARSE, make
from cbrank.metrics import ProgressiveAUC
rng = np.random.RandomState(0)
X, y = rng.standard_normal((70, 3)), rng.randint(0, 2, 70)
X[rng.random_sample(X.shape) < 0.3] = 0
for name in RANKERS:
    for rows in (X, sparse.csr_array(X)):
        ranker = make(name, class_weight="balanced")
        if hasattr(ranker, "buffer_size"):
            ranker.set_params(buffer_size=6)
        ranker.partial_fit(rows[:50], y[:50]).partial_fit(rows[50:], y[50:])
        print(name, *(float(w).hex() for w in np.round(ranker.coef_[0], 9)))
print(float(ProgressiveAUC(window=20).update(y, X[:, 0].round(1)).get()).hex())
"""


def run(code, **environment):
    """Run code in a process of its own and return what it printed to stdout and stderr."""
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout, process.stderr


def test_import_does_not_import_numba_or_extras():
    heavy = ["numba", "llvmlite", "polars", "matplotlib", "click"]
    code = f"print([name for name in {heavy} if name in __import__('sys').modules])"
    assert run(f"from cbrank import CBRanker; {code}")[0].strip() == "[]"
    code = "import cbrank, sys; print('sklearn' in sys.modules, dir(cbrank))"
    assert run(code)[0].startswith("False ['AdaOAMRanker', 'AdditiveRanker', 'CBRanker'")


@pytest.mark.slow
def test_first_run_says_that_it_compiles_and_the_second_does_not(tmp_path):
    first, second = (run(FIT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first[1].splitlines() == [
        "cbrank: compiling for this machine; the first run takes some seconds."
    ]
    assert second[1] == ""
    assert first[0] == second[0]


@pytest.mark.slow
def test_a_damaged_cache_is_compiled_over(tmp_path):
    expected = run(FIT, NUMBA_CACHE_DIR=str(tmp_path))[0]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {".nbi", ".nbc"} == {file.suffix for file in files}
    for suffix in (".nbi", ".nbc"):
        for file in files:
            if file.suffix == suffix:
                file.write_bytes(b"damaged")
        assert run(FIT, NUMBA_CACHE_DIR=str(tmp_path))[0] == expected


@pytest.mark.slow
def test_a_change_in_any_kernel_file_makes_the_cache_stale(tmp_path):
    package = tmp_path / "lib" / "cbrank"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    places = {"PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    before = run(FIT, **places)[0]
    vectors = package / "kernels" / "vectors.py"
    assert "return total" in vectors.read_text()
    vectors.write_text(vectors.read_text().replace("return total", "return 2.0 * total", 1))
    assert run(FIT, **places)[0] != before


@pytest.mark.slow
def test_a_read_only_install_works_and_says_so_once(tmp_path):
    package = tmp_path / "cbrank"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "__pycache__").touch()
    (tmp_path / "nowhere").touch()
    nowhere = str(tmp_path / "nowhere" / "cache")
    places = {
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": nowhere,
        "XDG_CACHE_HOME": nowhere,
    }
    printed, said = run(FIT, **places)
    assert printed == run(FIT)[0]
    assert said.count("set NUMBA_CACHE_DIR to a writable folder") == 1
    assert len(said.splitlines()) == 2


@pytest.mark.slow
def test_kernels_agree_with_plain_python_which_minds_bounds():
    code = SMALL.format(tests=str(Path(__file__).with_name("tools")))
    assert run(code, NUMBA_DISABLE_JIT="1")[0] == run(code)[0]
