"""Columns keep their meaning: learned from one stream, stored, and applied to another."""

import io
import json

import numpy as np
import pytest

from cbrank.streams import Columns, open_stream
from cbrank.streams.labels import Labels, canonical

TRAIN = b"city,age,y,id\nOslo,31,no,a\nRome,44,yes,b\n,27,no,c\n"


def read(data, columns, **options):
    with open_stream(io.BytesIO(data), columns=columns, **options) as stream:
        return list(stream), stream


def stored(columns):
    arrays, facts = columns.get_state()
    return Columns.from_state(arrays, json.loads(json.dumps(facts)))


def trained(**options):
    columns = Columns("y", id="id", **options)
    read(TRAIN, columns)
    return columns


def test_categories_become_features_as_they_appear():
    columns = Columns("y", id="id", categorical={"city": "onehot"})
    chunks, _ = read(TRAIN, columns, chunk_rows=2)
    assert [chunk.X.shape for chunk in chunks] == [(2, 3), (1, 4)]
    assert chunks[1].X.toarray().tolist() == [[27, 0, 0, 1]]
    assert chunks[1].X.has_canonical_format
    assert columns.feature_names() == ["age", "city=Oslo", "city=Rome", "city="]
    assert [chunk.ids for chunk in chunks] == [["a", "b"], ["c"]]
    assert columns.width_ == 4


def test_scoring_matches_columns_by_name_and_leaves_out_what_the_model_does_not_know():
    columns = stored(trained(categorical={"city": "onehot"}))
    data = b"note,id,city,age\nhi,z,Paris,50\nho,,Rome,51\n"
    chunks, stream = read(data, columns, learn=False, labels=False)
    assert chunks[0].X.toarray().tolist() == [[50, 0, 0, 0], [51, 0, 1, 0]]
    assert chunks[0].y is None
    assert chunks[0].ids == ["z", ""]
    assert stream.notes == ["<stream>: ignored 'note', which the model does not know."]
    assert columns.feature_names() == trained(categorical={"city": "onehot"}).feature_names()


def test_a_column_the_model_needs_must_be_there():
    columns = trained(categorical={"city": "onehot"})
    with pytest.raises(ValueError, match=r"no column 'age', which the model needs. Its columns"):
        read(b"city,id\nOslo,1\n", columns, learn=False, labels=False)
    with pytest.raises(ValueError, match="no column 'city', which the model needs"):
        read(b"age,id\n1,1\n", columns, learn=False, labels=False)
    with pytest.raises(ValueError, match="no column 'y', which the model needs"):
        read(b"age,city,id\n1,Oslo,1\n", columns, learn=False)
    chunks, stream = read(b"age,city\n1,Oslo\n", columns, learn=False, labels=False)
    assert chunks[0].ids is None
    assert stream.notes == ["<stream> has no column 'id', so its rows have no ids."]


def test_updating_goes_on_widening_and_keeps_the_labels():
    columns = stored(trained(categorical={"city": "onehot"}))
    chunks, _ = read(b"age,city,y,id\n1,Lima,no,d\n", columns)
    assert chunks[0].X.toarray().tolist() == [[1, 0, 0, 0, 1]]
    assert columns.feature_names()[-1] == "city=Lima"
    with pytest.raises(ValueError, match="the label 'maybe' is neither 'no' nor 'yes'"):
        read(b"age,city,y,id\n1,Lima,maybe,d\n", columns)


def test_hashed_and_declared_categories_have_a_fixed_width():
    columns = trained(categorical={"city": "hash:3"})
    assert columns.width_ == 9
    assert columns.feature_names()[:3] == ["age", "city#0", "city#1"]
    chunks, _ = read(b"city,age,y,id\n" + b"".join(b"c%d,0,no,1\n" % k for k in range(99)), columns)
    assert chunks[0].X.shape == (99, 9)
    assert set(np.unique(chunks[0].X.indices)) == set(range(1, 9))
    listed = trained(categorical={"city": ["Rome", "Oslo"]})
    assert listed.feature_names() == ["age", "city=Rome", "city=Oslo"]
    chunks, _ = read(TRAIN, listed)
    assert chunks[0].X.toarray().tolist() == [[31, 0, 1], [44, 1, 0], [27, 0, 0]]


@pytest.mark.parametrize("how", ["hash", "hash:0", "hash:25", "hash:x", "one-hot", ""])
def test_unknown_ways_to_be_categorical_are_refused(how):
    with pytest.raises(ValueError, match="'city' cannot be made categorical by"):
        Columns("y", categorical={"city": how})


def test_two_open_columns_share_the_end_of_the_row_in_order_of_appearance():
    columns = Columns("y", categorical={"b": "onehot", "a": "onehot"})
    chunks, _ = read(b"a,b,x,y\np,q,1,0\nr,q,2,1\np,s,3,0\n", columns, chunk_rows=2)
    assert columns.feature_names() == ["x", "b=q", "a=p", "a=r", "b=s"]
    assert chunks[1].X.toarray().tolist() == [[3, 0, 1, 0, 1]]
    assert stored(columns).feature_names() == columns.feature_names()
    again, _ = read(b"a,b,x,y\np,s,3,0\n", stored(columns), learn=False)
    assert again[0].X.toarray().tolist() == [[3, 0, 1, 0, 1]]


def test_svmlight_widens_in_training_and_is_cut_to_the_model_in_scoring():
    columns = Columns()
    chunks, _ = read(b"0 1:1\n1 5:2\n0 2:1\n", columns, chunk_rows=2)
    assert [chunk.X.shape[1] for chunk in chunks] == [5, 5]
    columns = stored(columns)
    chunks, _ = read(b"0 1:1 9:4\n", columns, learn=False, labels=False)
    assert chunks[0].X.toarray().tolist() == [[1, 0, 0, 0, 0]]
    assert columns.width_ == 5
    assert columns.feature_names() == ["1", "2", "3", "4", "5"]


def test_svmlight_may_start_at_zero():
    columns = Columns(zero_based=True)
    chunks, _ = read(b"0 0:1\n1 1:2\n", columns)
    assert chunks[0].X.toarray().tolist() == [[1, 0], [0, 2]]
    assert stored(columns).zero_based
    with pytest.raises(ValueError, match=r"line 1, column 3.*give `zero_based=True`"):
        read(b"0 0:1\n1 1:2\n", Columns())


def test_one_bad_index_cannot_make_rows_of_gigabytes():
    data = b"0 1:1\n1 16777217:1\n1 16777216:1\n"
    with pytest.raises(
        ValueError, match=r"line 2, column 3.*is not between 1 and 16777216. If rows"
    ):
        read(data, Columns())
    chunks, stream = read(data, Columns(), on_error="skip")
    assert chunks[0].X.shape == (2, 2**24)
    assert stream.position.errors == 1
    columns = stored(Columns(max_width=2**25))
    assert read(data, columns)[0][0].X.shape == (3, 2**24 + 1)


def test_endless_categories_are_refused():
    columns = Columns("y", categorical={"city": "onehot"}, max_width=3, drop=["id"])
    with pytest.raises(ValueError, match=r"column 'city' has so many categories.*max_width=3"):
        read(TRAIN, columns)


def test_what_has_not_learned_cannot_score():
    for data in (b"0 1:1\n", TRAIN):
        with pytest.raises(ValueError, match="these columns have not learned from any rows yet"):
            read(data, Columns("y"), learn=False)


@pytest.mark.parametrize(
    ("labels", "positive", "classes"),
    [
        (["0", "1"], None, ["0", "1"]),
        (["+1", "-1"], None, ["-1", "1"]),
        (["2", "10"], None, ["2", "10"]),
        (["b", "a"], None, ["a", "b"]),
        (["b", "a"], "a", ["b", "a"]),
        (["1.0", "0.5"], "0.50", ["1", "0.5"]),
        (["1", "bad"], None, ["1", "bad"]),
    ],
)
def test_the_greater_label_is_positive_unless_said(labels, positive, classes):
    known = Labels(positive)
    y, faults = known.encode(labels, learn=True, where="x")
    assert known.known() == classes
    assert y.tolist() == [int(canonical(label) == classes[1]) for label in labels]
    assert faults == []


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["Yes", "Yes", "No"], ["No", "Yes"]),
        (["t", "t", "f"], ["f", "t"]),
        (["0", "1", "1"], ["0", "1"]),
        (["-1", "+1", "1"], ["-1", "1"]),
        (["TRUE", "TRUE", "FALSE"], ["FALSE", "TRUE"]),
        (["negative", "hypothyroid", "negative"], ["negative", "hypothyroid"]),
        (["1", "2", "2"], ["2", "1"]),
        (["1", "1", "2"], ["1", "2"]),
        (["spam", "ham", "ham"], ["ham", "spam"]),
        (["yes", "true", "true"], ["true", "yes"]),
    ],
)
def test_the_affirmative_label_is_positive_else_the_rarer_one(labels, classes):
    known = Labels()
    y, _ = known.encode(labels, learn=True, where="x")
    assert known.known() == classes
    assert y.tolist() == [int(canonical(label) == classes[1]) for label in labels]


@pytest.mark.parametrize(
    ("only", "then", "classes"),
    [("no", "yes", ["no", "yes"]), ("No", "Yes", ["No", "Yes"]), ("0", "1", ["0", "1"])],
)
def test_one_of_two_opposites_tells_the_other(only, then, classes):
    known = Labels()
    assert known.encode([only], learn=True, where="x")[0].tolist() == [0]
    assert known.encode([then], learn=True, where="x")[0].tolist() == [1]
    assert known.known() == classes


def test_one_label_to_begin_with_needs_a_word():
    with pytest.raises(ValueError, match="one label only, 'spam'; say which label is the positive"):
        Labels().encode(["spam", "spam"], learn=True, where="x")
    known = Labels()
    assert known.encode(["1", "1.0"], learn=True, where="x")[0].tolist() == [1, 1]
    assert known.encode(["no", "1"], learn=True, where="x")[0].tolist() == [0, 1]
    assert known.known() == ["no", "1"]


def test_a_positive_label_that_no_row_has_is_named():
    known = Labels("maybe")
    _, [(row, sentence), _] = known.encode(["Y", "N", "N"], learn=True, where="x")
    assert row == 1
    assert sentence == (
        "the label 'N' is one too many: no row so far is labelled 'maybe' (`positive=...`), and there "
        "are N, Y."
    )
    _, [(_, sentence)] = known.encode(["maybe", "N"], learn=True, where="x")
    assert sentence == "the label 'N' is neither 'Y' nor 'maybe'."
    assert known.encode(["N"], learn=True, where="x")[1] == [(0, sentence)]


def test_three_labels_are_too_many():
    with pytest.raises(ValueError, match="two labels, and there are 3: 2, 10, x"):
        Labels().encode(["10", "x", "2"], learn=True, where="x")


TWICE = {"label": "y", "id": "id", "drop": ["age"], "categorical": {"city": "onehot"}}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"label": "city"}, "'city' cannot be the label and categorical at once; say one of the"),
        ({"label": "id"}, "'id' cannot be the label and the id"),
        ({"label": "age"}, "'age' cannot be the label and dropped"),
        ({"label": 2}, "'age' cannot be the label and dropped"),
        ({"id": "age"}, "'age' cannot be dropped and the id"),
        ({"drop": ["age", "id"]}, "'id' cannot be dropped and the id"),
        ({"drop": [1]}, "'city' cannot be dropped and categorical"),
        ({"categorical": {"1": "onehot", "city": "hash:2"}}, "'city' is made categorical twice"),
    ],
)
def test_a_column_is_one_thing(changes, sentence):
    with pytest.raises(ValueError, match=rf"^<stream>: column {sentence}"):
        read(TRAIN, Columns(**TWICE | changes))


def test_an_id_may_be_a_category_too():
    chunks, _ = read(TRAIN, Columns("y", id="city", categorical={"city": "onehot", "id": "hash:1"}))
    assert chunks[0].ids == ["Oslo", "Rome", ""]
    assert chunks[0].X.shape == (3, 6)


def test_categorical_columns_may_be_told_by_number():
    columns = Columns("y", categorical={"1": "onehot"}, drop=["id"])
    read(TRAIN, columns)
    assert columns.feature_names() == ["age", "city=Oslo", "city=Rome", "city="]
    assert stored(columns).categorical == {"city": "onehot"}


@pytest.mark.parametrize("wide", [0, -1, 2**31, 2**32, 10**12, 10**30])
def test_rows_cannot_be_wider_than_an_index_can_tell(wide):
    with pytest.raises(ValueError, match=r"max_width must lie between 1 and 2\^31 - 1, got "):
        Columns(max_width=wide)


def test_hashed_columns_cannot_be_wider_either():
    header = [f"c{number}" for number in range(200)]
    columns = Columns("y", categorical=dict.fromkeys(header, "hash:24"))
    with pytest.raises(ValueError, match="rows would be 3,355,443,200 features wide; hash"):
        read(",".join([*header, "y"]).encode() + b"\n", columns, format="csv")


INDICES = [2**31, 2**31 + 1, 2**32, 2**32 + 1, 2**53 + 1, 2**63, 2**64 + 1, 10**400]


@pytest.mark.parametrize(
    "index", INDICES, ids=lambda index: f"{str(index)[:12]}({len(str(index))})"
)
@pytest.mark.parametrize("widest", [2**24, 2**31 - 1])
def test_an_index_of_any_length_is_malformed_and_never_another_one(index, widest):
    data = b"0 1:1\n1 2:1\n1 1:5 %d:1\n0 %d:1\n" % (index, index)
    with pytest.raises(ValueError, match=rf"line 3, column 7: .* is not between 1 and {widest}"):
        read(data, Columns(max_width=widest))
    chunks, stream = read(data, Columns(max_width=widest), on_error="skip")
    assert chunks[0].X.toarray().tolist() == [[1, 0], [0, 1]]
    assert stream.position.errors == 2
    scoring = Columns()
    read(data[:12], scoring)
    with pytest.raises(ValueError, match="is not between 1 and 2147483647"):
        read(data, scoring, learn=False)


@pytest.mark.parametrize("number", [b"qid:%d" % 10**300, b"qid:18446744073709551617"])
def test_a_query_of_any_length_is_passed_over(number):
    chunks, _ = read(b"0 %b 1:1\n1 1:2\n" % number, Columns())
    assert chunks[0].X.toarray().tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "labels",
    [
        ["9007199254740992", "9007199254740993"],
        ["-9007199254740993", "-9007199254740992"],
        ["18446744073709551614", "18446744073709551615"],
        ["0.1", "0.10000000000000000001"],
        ["0", "1e-400"],
    ],
)
def test_labels_are_told_apart_by_all_their_digits(labels):
    known = Labels()
    y, faults = known.encode(
        [*labels, labels[0], labels[1] + ("0" if "." in labels[1] else "")], learn=True, where="x"
    )
    assert y.tolist() == [0, 1, 0, 1]
    assert faults == []
    assert [canonical(label) for label in known.known()] == known.known()


def test_labels_of_svmlight_text_that_doubles_cannot_tell_apart_are_refused():
    data = b"0 1:1\n1 1:2\n9007199254740993 1:3\n-1e300 1:3\n"
    with pytest.raises(ValueError, match=r"line 3, column 1: the label 9007199254740992\.0 is too"):
        read(data, Columns())
    chunks, stream = read(data, Columns(), on_error="skip")
    assert (chunks[0].y.tolist(), stream.position.errors) == ([0, 1], 2)
    with pytest.raises(ValueError, match="is too large: labels of svmlight text are doubles"):
        read(b"9007199254740992 1:1\n9007199254740993 1:1\n", Columns())
