"""Commands run from the outside, the rows they learn, and waiting for what they write."""

import re
import time

import numpy as np
import pytest
from click.testing import CliRunner

from cbrank.cli import main

CHUNK = 8192  # rows that the commands read at a time
TABLE = "id,age,city,clicked\n" + "".join(
    f"r{row},{row % 7},{'Oslo' if row % 3 else 'Rome'},{'yes' if row % 5 == 0 else 'no'}\n"
    for row in range(600)
)


def svmlight(rows, seed=0, width=5):
    rng = np.random.RandomState(seed)
    labels = rng.random_sample(rows) < 0.2
    X = (rng.standard_normal((rows, width)) + labels[:, None]).round(3)
    return "".join(
        f"{1 if label else -1} " + " ".join(f"{j}:{value}" for j, value in enumerate(row, 1)) + "\n"
        for label, row in zip(labels, X.tolist(), strict=True)
    )


def outcome_of(command, *arguments, **options):
    """Run a command; return how it ended, be it with an error of its own."""
    outcome = CliRunner().invoke(command, [str(argument) for argument in arguments], **options)
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return outcome


def call(*arguments, code=0, command=main, **options):
    """Run a command; return its stdout and its stderr without what depends on the machine."""
    result = outcome_of(command, *arguments, **options)
    assert result.exit_code == code, result.output
    timed = re.compile(r"^(Note: compiling.*|.* rows/s, .*)\n", re.MULTILINE)
    return result.stdout, timed.sub("", result.stderr)


def error(*arguments, **options):
    """Run a command that fails for its data or model; return the one sentence."""
    out, err = call(*arguments, code=1, **options)
    assert out == ""
    *notes, sentence = err.splitlines()
    assert all(line.startswith("Note: ") for line in notes)
    assert sentence.startswith("Error: ")
    return sentence.removeprefix("Error: ")


def wait_for_lines(path, lines, process, most_seconds=120):
    for _ in range(most_seconds * 50):
        if path.exists() and path.read_text().count("\n") >= lines:
            return
        assert process.poll() is None
        time.sleep(0.02)
    pytest.fail(f"{path} did not fill")
