"""What is read is a function of the bytes, never of the blocks they come in."""

import copy
import io

import pytest
from dribble import Dribble, outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from cbrank.streams import Columns, open_stream

BEGIN = "a,t,b,y\n1,x,1,0\n2,x,1,1\n"
cells = st.sampled_from(
    [
        "1",
        "2.5",
        "x",
        "",
        '"1"',
        '"x,y"',
        '"a\nb"',
        '"a\n""b""\r\nc"',
        '"open',
        '1"2',
        '"q" z',
        '"\n',
    ]
)
numbers = st.sampled_from(["1", "-2e3", "oops", '"3"', '"1\n2"', "", "1e999", "9" * 400])
records = st.tuples(numbers, cells, numbers, st.sampled_from(["0", "1", "0", "1", "2", ""]))
ends = st.sampled_from(["\n", "\n", "\r\n", "\n\n", "\n \n"])
rows = st.builds(
    lambda record, cut, end: ",".join(record[:cut]) + end,
    records,
    st.sampled_from([4, 4, 4, 4, 3]),
    ends,
)
tables = st.lists(rows, max_size=14).map("".join)
texts = st.text('1,2"\n\r xy\0é', max_size=60)
words = ["1 1:2 3:4", "0 2:1e5 #c", "# only", "", "1 qid:3 1:1", "0 3:1 2:1", "x 1:1", "1 1:x", "2"]
lines = st.builds(lambda word, end: word + end, st.sampled_from(words), ends)
svmlight = st.lists(lines, max_size=14).map(lambda found: "1 1:1\n0 1:2\n" + "".join(found))
OPTIONS = st.fixed_dictionaries(
    {
        "chunk_rows": st.sampled_from([1, 2, 5, 8192]),
        "on_error": st.sampled_from(["skip", "skip", "raise"]),
        "max_errors": st.sampled_from([0, 2, 10**6]),
    }
)
sizes = st.sampled_from([1, 3, 12, 40])


def agree(data, columns, *, longest=2**26, chunk_bytes=2**25, block=7, **options):
    """Read at once, in blocks, and on from every place, and compare."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cbrank.streams.text._LONGEST", longest)
        patch.setattr("cbrank.streams.reading.CHUNK_BYTES", chunk_bytes)
        whole = outcome(io.BytesIO(data), columns, **options)
        assert outcome(Dribble(data, block), columns, **options) == whole
        if whole[4] is None:
            resumed(data, columns, whole, block, options)
    return whole


def resumed(data, columns, whole, block, options):
    columns = copy.deepcopy(columns)
    stream = open_stream(io.BytesIO(data), columns=columns, **options)
    for number, chunk in enumerate(stream, 1):
        rest = outcome(Dribble(data, block), columns, start=chunk.position, **options)
        assert rest[0] == whole[0][number:]
        assert rest[2:] == whole[2:]


@settings(max_examples=300)
@given(tables | texts, OPTIONS, sizes, sizes, st.sampled_from([2**25, 20, 60]))
def test_tables_in_any_blocks(text, options, block, longest, chunk_bytes):
    columns = Columns("y", "1", categorical={"t": "onehot"})
    data = (BEGIN + text).encode()
    agree(data, columns, format="csv", block=block, chunk_bytes=chunk_bytes, **options)
    agree(data, columns, format="csv", block=block, longest=longest, **options)


@settings(max_examples=100)
@given(svmlight, OPTIONS, sizes, sizes, st.sampled_from([2**25, 20, 60]))
def test_svmlight_in_any_blocks(text, options, block, longest, chunk_bytes):
    data = text.encode()
    agree(
        data,
        Columns(positive="1"),
        format="svmlight",
        block=block,
        chunk_bytes=chunk_bytes,
        **options,
    )
    agree(data, Columns(positive="1"), format="svmlight", block=block, longest=longest, **options)


@given(
    st.sampled_from(["", "\n", "\n\n\r\n", "# c\n", "\ufeff", "\ufeff\n"]),
    st.sampled_from(['"a\nb",y\n1,0\n2,1\n', "a,y\n1,0\n2,1\n", "1 1:2\n0 1:1\n", '"a\n', "a,y"]),
    st.sampled_from([None, "csv", "svmlight"]),
    sizes,
    sizes,
)
def test_headers_and_formats_in_any_blocks(first, rest, form, block, longest):
    data = (first + rest).encode()
    agree(data, Columns("y"), format=form, block=block)
    agree(data, Columns("y"), format=form, block=block, longest=longest)


def test_where_reading_is_taken_up_behind_a_row_that_is_left_out():
    data = (
        BEGIN
        + 'oops,"1,x,1,0\n1,x,1,1",1,0\n'  # sound quotes: behind the row
        + 'oops,"1,x,1,0\n1,x,3,1" z,1,0\n'  # text after a quote: behind the first line
        + '4,"open,1,0\n5,x,1,1\n'  # never closed: behind the first line
    ).encode()
    chunks, complaints, *_ = agree(
        data, Columns("y", drop=["t"]), format="csv", on_error="skip", block=3
    )
    assert [row for X, *_ in chunks for row in X] == [[1, 1], [2, 1], [5, 1]]
    places = [sentence.split(": ")[0].removeprefix("<stream>, ") for sentence in complaints]
    assert places == [
        "line 4, column 'a'",
        "line 6, column 'a'",
        "line 7",
        "line 8, column 't'",
    ]


def test_a_quote_that_is_not_closed_for_long_costs_one_line():
    data = (BEGIN + '3,"open,1,0\n' + "4,x,1,1\n" * 40).encode()
    chunks, complaints, *_ = agree(
        data, Columns("y", drop=["t"]), format="csv", on_error="skip", longest=100
    )
    assert sum(len(X) for X, *_ in chunks) == 42
    assert complaints == [
        "<stream>, line 4: a row of more than 0 MiB; is one of its quotes not closed?"
    ]
