"""The registry, the embedded files, and where data sets are looked for."""

import gzip
import lzma
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from cbrank import datasets
from cbrank.datasets import registry
from cbrank.datasets.labels import quarter_of_classes
from cbrank.datasets.store import cache_folder

PAPER = {
    "glass": (214, 10),
    "ionosphere": (351, 34),
    "german": (1000, 24),
    "svmguide4": (612, 10),
    "svmguide3": (1284, 21),
    "cod-rna": (331152, 8),
    "spambase": (4601, 57),
    "covtype": (581012, 54),
    "magic04": (19020, 11),
    "heart": (270, 13),
    "australian": (690, 14),
    "diabetes": (768, 8),
    "acoustic": (78823, 50),
    "vehicle": (846, 18),
    "segment": (2310, 19),
    "farm-ads": (4143, 54877),
    "rcv1": (15564, 47236),
    "sector": (9619, 55197),
    "real-sim": (72309, 20958),
    "news20": (15937, 62061),
    "reuters": (8293, 18933),
}
EMBEDDED = ["glass", "german", "svmguide3", "diabetes", "vehicle", "segment"]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine with nothing but the embedded files."""
    monkeypatch.delenv("CBRANK_DATA", raising=False)
    monkeypatch.setenv("CBRANK_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def tiny(monkeypatch):
    """A data set of three rows, with a sample of two."""
    entry = datasets.DataSet(
        name="tiny",
        title="Tiny",
        table="high-dimensional",
        paper_rows=3,
        paper_features=4,
        rows=3,
        features=4,
        classes=3,
        positive=7,
        grouping="chosen",
        positives=1,
        note="Whole.",
        parts=(datasets.Part(address="http://127.0.0.1:9/tiny"),),
        licence="none",
        sample=datasets.Sample(
            file="tiny-part", rows=2, features=4, classes=2, positive="greater", note="Part."
        ),
    )
    monkeypatch.setitem(registry._SETS, "tiny", entry)
    return entry


WHOLE = b"7 1:0.5\n8 2:1\n9 4:1\n"
PART = b"7 1:0.5\n8 2:1\n"


def test_the_paper_has_21_sets():
    assert datasets.names() == list(PAPER)
    assert datasets.names("benchmark") == list(PAPER)[:15]
    assert datasets.names("high-dimensional") == list(PAPER)[15:]
    with pytest.raises(ValueError, match="table must be"):
        datasets.names("Table 1")


@pytest.mark.parametrize("name", PAPER)
def test_an_entry_is_complete(name):
    entry = datasets.info(name)
    assert (entry.paper_rows, entry.paper_features) == PAPER[name]
    assert entry.note or (entry.rows, entry.features) == PAPER[name]
    assert entry.title
    assert entry.licence
    assert entry.parts
    assert all(part.address.startswith(("http://", "https://")) for part in entry.parts)


@pytest.mark.parametrize(
    ("name", "hint"), [("Reuters", "'reuters'"), ("cod_rna", "'cod-rna'"), ("", "there are glass")]
)
def test_unknown_names_are_refused_with_a_hint(name, hint):
    with pytest.raises(ValueError, match=f"unknown data set '{name}': .*{hint}"):
        datasets.load(name)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_load_without_a_network(nowhere, name):
    X, y, facts = datasets.load(name)
    entry = datasets.info(name)
    assert X.shape == (entry.rows, entry.features) == (facts.rows, facts.features)
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert np.isfinite(X).all()
    assert y.dtype == np.int64
    assert set(y) == {0, 1}
    assert y.sum() == facts.positives == entry.positives
    assert (facts.source, facts.sample, facts.name) == ("embedded", False, name)
    assert not (nowhere / "cache").exists()


def test_only_embedded_sets_are_available_on_a_bare_machine(nowhere):
    assert datasets.available() == EMBEDDED
    folder = Path(datasets.__file__).with_name("data")
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["README.md", *(f"{name}.svm.xz" for name in EMBEDDED)]
    )
    assert all(name in (folder / "README.md").read_text() for name in EMBEDDED)


@pytest.mark.parametrize(
    ("name", "sizes", "positive"),
    [
        ("vehicle", {1: 212, 2: 217, 3: 218, 4: 199}, [1]),
        ("segment", dict.fromkeys(range(1, 8), 330), [1, 2, 3]),
        ("german", {1: 700, 2: 300}, [2]),
        ("diabetes", {-1: 500, 1: 268}, [1]),
    ],
)
def test_labels_are_the_papers_or_the_classes_of_the_source(name, sizes, positive):
    classes = datasets.load(name, labels="original").y
    assert classes.dtype == np.int64
    assert dict(zip(*np.unique(classes, return_counts=True), strict=True)) == sizes
    y, facts = datasets.load(name, labels="paper")[1:]
    assert y.tolist() == np.isin(classes, positive).tolist()
    assert np.array_equal(y, datasets.load(name).y)
    assert facts.positives == sum(sizes[label] for label in positive)
    assert facts == datasets.load(name, labels="original").facts


@pytest.mark.parametrize("labels", ["raw", "Paper", True, None, 1, ["paper"]])
def test_other_labels_are_refused(labels):
    with pytest.raises(ValueError, match=r"labels must be one of \('paper', 'original'\), got"):
        datasets.load("glass", labels=labels)


@pytest.mark.parametrize("name", PAPER)
def test_who_says_which_classes_are_positive(name):
    entry = datasets.info(name)
    assert (entry.grouping == "source") == (entry.classes == 2)
    assert (entry.grouping == "source") == (
        entry.positive == "greater" or name in {"german", "heart"}
    )
    if entry.sample:
        assert (entry.sample.grouping == "source") == (entry.sample.classes == 2)


@pytest.mark.parametrize("name", EMBEDDED)
def test_facts_say_where_the_grouping_comes_from(nowhere, name):
    assert datasets.load(name).facts.grouping == datasets.info(name).grouping


@pytest.mark.parametrize("ending", [".svm.xz", ".svm", ".svm.gz", ".svm.bz2", ""])
def test_files_are_found_in_the_folder_that_cbrank_data_names(monkeypatch, nowhere, tiny, ending):
    (nowhere / f"tiny{ending}").write_bytes(lzma.compress(WHOLE))
    assert "tiny" not in datasets.available()
    monkeypatch.setenv("CBRANK_DATA", str(nowhere))
    assert "tiny" in datasets.available()
    X, y, facts = datasets.load("tiny")
    assert isinstance(X, csr_array)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.toarray().tolist() == [[0.5, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    assert y.tolist() == [1, 0, 0]
    assert facts == datasets.Facts("tiny", 3, 4, 1, "chosen", "CBRANK_DATA", False, "Whole.")
    assert datasets.fetch("tiny") == nowhere / f"tiny{ending}"


def test_the_order_is_embedded_data_folder_cache_sample(monkeypatch, nowhere, tiny):
    cache = nowhere / "cache"
    cache.mkdir()
    monkeypatch.setenv("CBRANK_DATA", str(nowhere))
    (nowhere / "tiny-part.svm").write_bytes(PART)
    X, y, facts = datasets.load("tiny")
    assert facts == datasets.Facts("tiny", 2, 4, 1, "source", "CBRANK_DATA", True, "Part.")
    assert X.shape == (2, 4)
    assert y.tolist() == [0, 1]
    (cache / "tiny.svm.gz").write_bytes(gzip.compress(WHOLE))
    assert datasets.load("tiny").facts.source == "cache"
    (nowhere / "tiny.svm").write_bytes(WHOLE)
    assert datasets.load("tiny").facts.source == "CBRANK_DATA"
    (nowhere / "glass.svm").write_bytes(b"")
    assert datasets.load("glass").facts.source == "embedded"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (PART, "expected 3 rows for tiny, found 2"),
        (b"", "expected 3 rows for tiny, found 0"),
        (b"7\n8\n9 3:1\n", "expected 4 features for tiny, found 3"),
        (b"7\n7\n9 4:1\n", "expected 3 classes for tiny, found 2"),
        (b"6\n8\n9 4:1\n", "expected 1 positive rows for tiny, found 0"),
        (b"7.5\n8\n9 4:1\n", "expected labels that are whole numbers"),
        (b"1e300\n8\n9 4:1\n", "expected labels that are whole numbers"),
        (b"7\n8\n9 5:1\n", "line 3, column 3: the index of '5:1' is not between 1 and 4"),
    ],
)
def test_wrong_contents_are_refused(monkeypatch, nowhere, tiny, text, complaint):
    path = nowhere / "tiny.svm"
    path.write_bytes(text)
    monkeypatch.setenv("CBRANK_DATA", str(nowhere))
    with pytest.raises(ValueError, match=complaint) as caught:
        datasets.load("tiny")
    assert str(caught.value).startswith(str(path))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=400), st.text())
def test_a_quarter_of_the_classes(labels, name):
    labels = np.array(labels)
    chosen = quarter_of_classes(labels, name)
    share = np.isin(labels, chosen).mean()
    assert share <= 0.25
    assert chosen == quarter_of_classes(labels[::-1], name)
    rest = np.setdiff1d(labels, chosen)
    assert all((labels == label).mean() + share > 0.25 for label in rest)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_cache_is_the_platforms(monkeypatch, tmp_path, platform):
    for variable in ("CBRANK_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    for home in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(home, str(tmp_path))
    monkeypatch.setattr(sys, "platform", platform)
    below = {"linux": ".cache", "darwin": "Library/Caches", "win32": "AppData/Local"}
    assert cache_folder() == tmp_path / below[platform] / "cbrank"
    monkeypatch.setenv("CBRANK_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "mine"


def test_importing_is_light():
    program = "import sys, cbrank.datasets; print('numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert result.stdout.strip() == b"False"


@pytest.mark.parametrize("name", [name for name in PAPER if name not in EMBEDDED])
def test_larger_sets_are_as_the_registry_says(name):
    if not os.environ.get("CBRANK_DATA"):
        pytest.skip("CBRANK_DATA names no folder with the larger data sets")
    if name not in datasets.available():
        pytest.skip(f"{name} is not in the folder that CBRANK_DATA names")
    X, y, facts = datasets.load(name)
    entry = datasets.info(name)
    assert X.shape == (facts.rows, facts.features)
    assert facts.features == entry.features
    assert facts.sample == (facts.rows != entry.rows)
    assert not facts.sample or facts.note.startswith("A sample")
    assert isinstance(X, np.ndarray) == (entry.table == "benchmark")
    assert y.sum() == facts.positives
