"""Starting: what is imported, compiled, cached and said."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cbrank
from cbrank import kernels

SOURCE = Path(cbrank.__file__).parent
MEASURE = """
import numpy as np
from cbrank.kernels import deviations
std, X, Sigma = np.empty(2), np.eye(2), np.diag([4.0, 9.0])
X.flags.writeable = Sigma.flags.writeable = False
deviations.deviations(X, Sigma, std)
print(std.tolist())
"""
LEARN = """
import numpy as np
from cbrank import CBRanker
rng = np.random.default_rng(0)
X, y = rng.standard_normal((300, 24)), rng.integers(0, 2, 300)
ranker = CBRanker(1.0, random_state=0).partial_fit(X, y)
print(ranker.coef_.tolist(), ranker.predict_proba(X[:9]).tolist())
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
# Lines of a command each, run one after the other in the process of the command ``cbrank``.
COMMANDS = """
import sys
from cbrank.__main__ import run
for line in {lines!r}:
    sys.argv = ["cbrank", *line.split()]
    try:
        run()
    except SystemExit as end:
        assert not end.code, line
print({heavy!r} & {{*sys.modules}} or "none of them")
"""
HEAVY = {"sklearn", "pandas", "scipy.stats", "matplotlib"}
# What rankers, scalers and encoders do, with scikit-learn's base classes and with those in their place.
BEHAVIOUR = """
import copy, pickle, warnings
import numpy as np
from cbrank.optional import do_without
{first}
from cbrank import AdditiveRanker, CBRanker
from cbrank.features import TableEncoder
from cbrank.streams import StreamScaler
rng = np.random.default_rng(0)
X, y = rng.standard_normal((300, 3)), np.arange(300) % 2
ranker = CBRanker(0.5, eta=0.8, random_state=1).partial_fit(X, y)
print(ranker, ranker.get_params(), CBRanker.__mro__[-2].__module__.split(".")[0])
for twin in (copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker)), copy.copy(ranker)):
    print(twin, twin.partial_fit(X, y).coef_.tolist())
print(ranker.set_params(n_passes=2).fit(X, y).score(X, y), ranker.predict_proba(X[:3]).tolist())
table = AdditiveRanker(random_state=0).fit({{"a": X[:, 0], "b": ["u", "v", "w"] * 100}}, y)
print(table, table.decision_function({{"a": [0.5], "b": ["v"]}}).tolist())
scaler = StreamScaler("maxabs").fit(X)
print(scaler, scaler.transform(X[:2]).tolist())
print(TableEncoder().fit({{"a": [1, 2, 3]}}).get_feature_names_out())
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer
print(clone(ranker), is_classifier(ranker), get_scorer("roc_auc")(ranker, X, y))
wrong = [
    lambda: CBRanker(-1.0).fit(X, y),
    lambda: CBRanker(policy="lifo").fit(X, y),
    lambda: CBRanker(n_passes=2.5).fit(X, y),
    lambda: StreamScaler("none of these").fit(X),
    lambda: TableEncoder(pieces=0).fit(X),
    lambda: CBRanker().decision_function(X),
    lambda: ranker.decision_function(X[:, :2]),
    lambda: ranker.decision_function(X[0]),
    lambda: ranker.partial_fit(X * np.nan, y),
    lambda: ranker.partial_fit(X, y[:3]),
    lambda: CBRanker().fit(X, np.arange(300) % 3),
    lambda: scaler.transform(X * np.inf),
]
for number, call in enumerate(wrong):
    try:
        call()
    except ValueError as error:
        print(number, type(error).__name__, error)
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


@pytest.mark.parametrize("kind", ["numbers", "linear", "table"])
def test_commands_learn_and_score_without_scikit_learn(kind, tmp_path):
    data, model = tmp_path / "rows", tmp_path / "model"
    line, header, options = {
        "numbers": ("{} 1:{} 2:{}\n", "", "--covariance diagonal"),
        "linear": ("{},{},{}\n", "label,a,b\n", "--label label --shape linear --scale standard"),
        "table": ("{},{},shop {}\n", "label,a,b\n", "--label label"),
    }[kind]
    rows = [(number % 2, number % 7, number % 5) for number in range(600)]
    data.write_text(header + "".join(line.format(*row) for row in rows))
    lines = [
        f"train {data} -o {model} --quiet {options}",
        f"update {model} {data} --quiet",
        f"score {model} {data} --proba -o {tmp_path / 'scores'} --quiet",
    ]
    assert run(COMMANDS.format(lines=lines, heavy=HEAVY))[0] == "none of them\n"
    assert len((tmp_path / "scores").read_text().splitlines()) == 601


def test_estimators_do_the_same_without_scikit_learns_base_classes():
    theirs, ours = (
        run(BEHAVIOUR.format(first=first), PYTHONHASHSEED="0")[0]
        for first in ("", "do_without('sklearn')")
    )
    assert theirs.count("sklearn") == ours.count("sklearn") + 1
    assert theirs.splitlines()[1:] == ours.splitlines()[1:]
    assert theirs.count("Error ") == 12


@pytest.mark.slow
def test_other_commands_work_with_the_classes_in_the_place_of_scikit_learns(tmp_path):
    data, model = tmp_path / "rows.csv", tmp_path / "model"
    rows = "".join(f"{number % 2},{number % 7}\n" for number in range(600))
    data.write_text("label,a\n" + rows)
    lines = [
        f"train {data} -o {model} --quiet --label label --scale maxabs",
        f"evaluate {model} {data}",
        f"inspect {model}",
        f"export {model} --onnx {tmp_path / 'model.onnx'}",
        f"reproduce --quick --datasets glass --jobs 1 --no-report --out {tmp_path / 'study'}",
    ]
    run(COMMANDS.format(lines=lines, heavy=HEAVY))


@pytest.mark.slow
def test_first_run_says_that_it_compiles_and_the_second_does_not(tmp_path):
    compiler = "print('numba.np.arraymath' in __import__('sys').modules)"
    places = {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (run(MEASURE, **places) for _ in range(2))
    assert run(MEASURE + compiler, **places)[0].splitlines()[-1] == "False"
    assert first[1].splitlines() == [
        "cbrank: compiling for this machine; the first run takes about half a minute."
    ]
    assert second[1] == ""
    assert first[0] == second[0]


@pytest.mark.slow
def test_a_process_that_compiles_learns_what_those_after_it_learn(tmp_path):
    first, second = (run(LEARN, NUMBA_CACHE_DIR=str(tmp_path))[0] for _ in range(2))
    assert first == second


def test_only_python_calls_kernels():
    """What is kept on disk of a kernel is not enough to inline it into another."""
    modules = [getattr(kernels, name) for name in kernels.__all__]
    compiled = [item for module in modules for item in vars(module).values() if is_compiled(item)]
    entries = [item for item in compiled if type(item._cache).__name__ == "_KernelCache"]
    assert len(entries) > 20
    for function in {id(item): item for item in compiled}.values():
        called = inspect.getclosurevars(function.py_func).globals.values()
        assert not [item for item in called if any(item is entry for entry in entries)], function


def is_compiled(item):
    return hasattr(item, "py_func") and hasattr(item, "_cache")


@pytest.mark.slow
def test_a_damaged_cache_is_compiled_over(tmp_path):
    expected = run(MEASURE, NUMBA_CACHE_DIR=str(tmp_path))[0]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {".nbi", ".nbc"} == {file.suffix for file in files}
    for suffix in (".nbi", ".nbc"):
        for file in files:
            if file.suffix == suffix:
                file.write_bytes(b"damaged")
        assert run(MEASURE, NUMBA_CACHE_DIR=str(tmp_path))[0] == expected


@pytest.mark.slow
def test_a_change_in_any_kernel_file_makes_the_cache_stale(tmp_path):
    package = tmp_path / "lib" / "cbrank"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    places = {"PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    told = [run(MEASURE, **places)[1] for _ in range(2)]
    assert ["compiling" in each for each in told] == [True, False]
    vectors = package / "kernels" / "vectors.py"  # which this kernel does not use
    vectors.write_text(vectors.read_text() + "\n# changed\n")
    assert "compiling" in run(MEASURE, **places)[1]


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
    printed, said = run(MEASURE, **places)
    assert printed == "[2.0, 3.0]\n"
    assert said.count("set NUMBA_CACHE_DIR to a writable folder") == 1
    assert len(said.splitlines()) == 2


@pytest.mark.slow
def test_kernels_agree_with_plain_python_which_minds_bounds():
    code = SMALL.format(tests=str(Path(__file__).with_name("tools")))
    assert run(code, NUMBA_DISABLE_JIT="1")[0] == run(code)[0]
