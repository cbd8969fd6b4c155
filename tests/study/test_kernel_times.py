"""What is timed learns what a fit learns, and how times are taken, kept and shown."""

from itertools import count

import numpy as np
import pytest
from click.testing import CliRunner
from made_up_study import result, study, write_study
from scipy.sparse import csr_array
from scipy.special import ndtri

from cbrank import datasets, paper
from cbrank.cli import main
from cbrank.methods import METHODS, names
from cbrank.study import plain_loop
from cbrank.study.kernel_times import measure, shortest, tasks_to_time
from cbrank.study.report.study import read_study
from cbrank.study.report.time_tables import mean_times, time_table
from cbrank.study.settings import Settings, StudyError
from cbrank.study.splits import split
from cbrank.study.tasks import plan
from cbrank.study.times_file import PLAIN, Time, read_times, write_times

SETTINGS = Settings(benchmark_rows=200)


@pytest.mark.parametrize("method", names("paper", "rival"))
@pytest.mark.parametrize("kind", ["benchmark", "high-dimensional"])
def test_the_timed_call_learns_what_a_fit_learns(kind, method):
    if kind not in METHODS[method].kinds:
        return
    random = np.random.default_rng(3)
    X = random.standard_normal((300, 70)) * (random.random((300, 70)) < 0.3) / 5
    y = (X[:, :9].sum(axis=1) + random.standard_normal(300) / 5 > 0.2).astype(np.int64)
    rows = X if kind == "benchmark" else csr_array(X)
    ranker = METHODS[method].new(0.25, 7)
    ranker.kernel_call(rows, y, 7)()
    fitted = METHODS[method].new(0.25, 7).fit(rows, y)
    assert np.any(fitted.coef_)
    np.testing.assert_allclose(ranker.weights(), fitted.coef_[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])
def test_plain_loops_are_the_paper(diagonal):
    random = np.random.default_rng(5)
    X = random.standard_normal((150, 7)) * (random.random((150, 7)) < 0.6)
    y, C = (X[:, 0] + random.standard_normal(150) > 0.5).astype(np.int64), 0.5
    stream = zip(X, 2 * y - 1, strict=True)
    mu, Sigma = paper.cbr(stream, C, M=20, covariance="diagonal" if diagonal else "full")
    if diagonal:
        state, rows = plain_loop.empty_diagonal_state(7, 20), csr_array(X)
        parts = rows.data, rows.indices, rows.indptr
        plain_loop.learn_diagonal(*parts, y, state, C, float(ndtri(0.7)))
        found = state.mu, state.G
    else:
        full = plain_loop.empty_state(7, 20)
        plain_loop.learn(X, y, full, C, float(ndtri(0.7)))
        found = full.mu, full.Sigma
    np.testing.assert_allclose(found[0], mu, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1], Sigma, rtol=1e-9, atol=1e-12)


def test_the_shortest_time_counts_and_fits_take_turns():
    made, now = [], [0.0]

    def taking(name, *seconds):
        left = iter([*seconds, *([seconds[-1]] * 30)])

        def begin():
            now[0] += 100  # what is not timed
            made.append(name)
            return lambda: now.__setitem__(0, now[0] + next(left))

        return begin

    found = shortest([taking("slow", 9.0, 3.0, 4.0), taking("fast", 0.001)], lambda: now[0])
    assert [times for times, _ in found] == [3, 20]
    assert [seconds for _, seconds in found] == pytest.approx([3.0, 0.001])
    assert made[:6] == ["slow", "fast"] * 3
    assert set(made[6:]) == {"fast"}


def test_compilation_is_in_no_time():
    clock = count()  # each call takes one second, the first reading of it is 0
    (found,) = shortest([lambda: lambda: None], lambda: next(clock))
    assert found == (3, 1)


def test_each_run_of_each_method_is_timed_but_the_ceiling():
    tasks = plan(["glass", "german"], ["CBR_FIFO", "OPAUC", "Batch LR"], ["unit", "none"], runs=2)
    wanted = tasks_to_time(tasks)
    assert {(t.scaling, t.method) for t in wanted} == {("unit", "CBR_FIFO"), ("unit", "OPAUC")}
    found = [time for _, time in measure(dict.fromkeys(wanted, 0.5), SETTINGS)]
    assert [(t.dataset, t.run, t.method) for t in found] == [
        (dataset, run, method)
        for dataset in ("glass", "german")
        for run in (0, 1)
        for method in (PLAIN["CBR_FIFO"], "CBR_FIFO", "OPAUC")
    ]
    assert all(t.fits >= 3 and t.seconds > 0 and t.parameter == 0.5 for t in found)
    assert {t.rows for t in found if t.dataset == "german"} == {
        len(split("german", 0, "unit", SETTINGS).y)
    }


def timed(dataset, method, run, seconds, parameter=0.125):
    kind = datasets.info(dataset).table
    return Time(kind, dataset, method, run, parameter, 100, 9, 3, seconds)


def test_the_file_keeps_times(tmp_path):
    times = [timed("glass", PLAIN["CBR_FIFO"], 0, 1 / 3), timed("sector", "OPAUCr", 1, 2e-9)]
    write_times(tmp_path / "times.csv", times)
    assert read_times(tmp_path / "times.csv") == times
    assert read_times(tmp_path / "none.csv") == []


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n", "{head}\nbenchmark,glass\n", "{head}\n1" + ",x" * 8]
)
def test_a_damaged_file_is_refused(tmp_path, text):
    (tmp_path / "times.csv").write_text(text.replace("{head}", ",".join(Time._fields)))
    with pytest.raises(StudyError, match="damaged"):
        read_times(tmp_path / "times.csv")


def test_times_are_means_over_runs_and_bold_where_shortest(tmp_path):
    write_study(
        tmp_path, [result("glass", "unit", m, r) for m in ("CBR_FIFO", "OPAUC") for r in (0, 1)]
    )
    times = [timed("glass", m, r, s, 2.0 ** (r - 3)) for m, r, s in [
        ("CBR_FIFO", 0, 0.004), ("CBR_FIFO", 1, 0.002), ("OPAUC", 0, 0.001), ("OPAUC", 1, 0.0015),
    ]]  # fmt: skip
    write_times(tmp_path / "times.csv", times)
    found = read_study(tmp_path)
    assert mean_times(found, "benchmark") == pytest.approx(
        {("glass", "CBR_FIFO"): 0.003, ("glass", "OPAUC"): 0.00125}
    )
    table = time_table(found, "benchmark")
    assert [(c.text, c.bold) for c in table.rows[0].cells] == [("3.00", False), ("1.25", True)]
    assert [c.text for c in table.foot[0].cells] == ["3.00", "1.25"]
    assert time_table(found, "high-dimensional").rows == ()


def test_times_of_other_parameters_than_the_results_are_left_out(tmp_path):
    write_study(tmp_path, study(sets=("glass",), extras=()))
    times = [timed("glass", "OPAUC", 0, 1.0), timed("glass", PLAIN["CBR_FIFO"], 0, 2.0)]
    stale = [timed("glass", "OPAUC", 1, 1.0), timed("glass", "Other", 0, 1.0)]
    write_times(tmp_path / "times.csv", times + stale)
    assert list(read_study(tmp_path).times) == times


def test_the_command_times_what_it_has_run(tmp_path):
    asked = "--datasets glass --methods CBR_FIFO,Uni-Exp --runs 1 --quick --jobs 1 --no-report"
    command = ["reproduce", *asked.split(), "--out", str(tmp_path)]
    assert CliRunner().invoke(main, command).exit_code == 0
    assert not (tmp_path / "times.csv").exists()
    done = CliRunner().invoke(main, [*command, "--times"])
    assert done.exit_code == 0, done.output
    found = read_study(tmp_path).times
    assert [t.method for t in found] == [PLAIN["CBR_FIFO"], "CBR_FIFO", "Uni-Exp"]
    assert CliRunner().invoke(main, [*command, "--fresh"]).exit_code == 0
    assert not (tmp_path / "times.csv").exists()
