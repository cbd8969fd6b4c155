"""What the tests of commands share."""

import pytest
from commands import CHUNK, TABLE, svmlight


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.svm").write_text(svmlight(2 * CHUNK + 500))
    (tmp_path / "more.svm").write_text(svmlight(700, seed=1, width=7))
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path
