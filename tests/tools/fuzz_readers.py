"""Throw broken input at the readers: ``python tests/tools/fuzz_readers.py --count 100000``.

Each input is made from a number alone, so a failure is repeated by ``--seed NUMBER --count 1``.
Good files are cut, spliced, flipped and filled with awkward words, some are compressed and then
damaged, and read with random options. Rows, or a ValueError of one sentence, are fine; any other
exception, text that reads otherwise when it comes in small blocks, an input that takes more than ten
seconds, or memory that grows by more than 200 MB is a failure. The readers "table" and "tables" take
CSV and Parquet as they come: separators, marks, headers and encodings are told, or forced. ``--atheris`` lets coverage guide the input instead (pip install atheris); with
``NUMBA_DISABLE_JIT=1`` in the environment the kernels' coverage guides it too.
"""

import argparse
import bz2
import contextlib
import functools
import gzip
import io
import lzma
import random
import resource
import signal
import sys
import time

import numpy as np
import pyarrow as pa
from pyarrow import parquet

watched = contextlib.nullcontext()
if "--atheris" in sys.argv:
    import atheris

    watched = atheris.instrument_imports(include=["cbrank"])
with watched:
    from cbrank.features.table import Table
    from cbrank.kernels import csv, svmlight  # noqa: F401
    from cbrank.streams import Columns, Position, TableColumns, open_stream

from dribble import Dribble, outcome

SVMLIGHT = b"1 1:0.5 3:-2 # c\n-1 qid:4 2:1e-3\r\n+1 1:7 2:8 4:9.25\n-1\n\n1 2147483647:1\n" * 3
CSV = (
    b'id,age,city,"a, b",y\nr1,31,Oslo,0.5,no\nr2,44,"Rome, IT",1e-3,yes\n'
    b'r3,27,"say ""hi""",-7.25,no\n"r\n4",1,,2,yes\r\n\nr5,9007199254740993,x,1e300,no\n'
) * 2
WORDS = [
    *(b"nan inf -inf NA null 1e999 -1e999 1e-999 0 -1 -0 00 99999999999999999999 2147483648".split()),
    *(b'" "" , \n \r \r\n \0 \xef\xbb\xbf \xff : 0: 1: # qid: e E . - + 1_0 0x1p3 PAR1'.split(b" ")),
    b"9" * 400, b"x" * 70_000, b"," * 300, b'"' * 7, b"1:1 " * 50, "é".encode(), b"\xe9",
]  # fmt: skip
SECONDS, MEGABYTES = 10, 200
READERS = ["svmlight", "csv", "parquet", "table", "tables"]
TABLES = [
    CSV,
    b'sep=;\r\nage;pay;note;y\r\n31;1.234,5;a, b;no\r\n?;,25;"x;y";yes\r\n7;-3,5;NA;no\r\n' * 2,
    b"Report of May\n\nid\tage\twhen\ty\na\t1\t2024-01-31\tt\nb\t007\t31.12.2023\tf\nc\t\t\t\n",
    "ж|é|y|\n1e3|Žižek|Yes|\n-0|naïve|No|\n$1,250.50|50%|no|\n".encode(),
    "größe,y\n1,ja\n2,nein\n3,nein\n".encode("cp1252"),
    b"39, State-gov, 77516, <=50K\n50, Self-emp, 83311, >50K\n28, Private, 338409, <=50K\n",
    b'"a","b","a","","y"\n"1","x","2","","1"\n"2","""","3","","0"\n',
    b"a,b,y\n1,2,3,yes\n4,5,6,no\n",
]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "utf-32", "sjis"]


def parquet_seed():
    file = io.BytesIO()
    table = {
        "id": ["r1", "r2", "r3"], "age": [1, 2, 3], "city": ["Oslo", None, "Rome"],
        "a, b": [0.5, -1.0, 2.0], "y": ["no", "yes", "no"],
    }  # fmt: skip
    parquet.write_table(pa.table(table), file, row_group_size=2)
    return file.getvalue()


def seed_of(reader):
    known = {"svmlight": SVMLIGHT, "csv": CSV, "table": TABLES[0]}
    return known.get(reader) or parquet_seed()


def written(draw):
    """Return a table in some encoding, now and then the bytes of nothing."""
    data = draw.choice([*TABLES, draw.randbytes(draw.choice([0, 1, 3, 200]))])
    with contextlib.suppress(UnicodeError):
        data = data.decode().encode(draw.choice(["utf-8", *ENCODINGS]))
    return data.replace(b"\n", draw.choice([b"\n", b"\n", b"\r\n", b"\r", b",\n"]))


def broken(data, draw):
    """Break some bytes in a few ways."""
    data = bytearray(data)
    for _ in range(draw.choice([0, 1, 1, 2, 3, 8])):
        at = draw.randrange(len(data) + 1)
        to = min(len(data), at + draw.choice([0, 1, 2, 9, 50]))
        data[at:to] = draw.choice([
            lambda: draw.choice(WORDS),
            lambda: draw.randbytes(draw.choice([1, 1, 2, 30])),
            lambda: b"",
            functools.partial(bytes, 2 * data[at:to]),
        ])()  # fmt: skip
    return bytes(data[: draw.choice([len(data), len(data), draw.randrange(len(data) + 1)])])


def compressed(data, draw):
    pack = draw.choice([gzip.compress, bz2.compress, lzma.compress])
    packed = bytearray(pack(data))
    if draw.random() < 0.5:
        packed[draw.randrange(len(packed))] ^= 1 << draw.randrange(8)
    return bytes(packed)


def table_options(reader, draw):
    """Return how to take a table as it comes; now and then by force."""
    kinds = {"*": "word", "a*": "number", "y": "drop", "age": "time", "[": "text", "q": "text"}
    columns = TableColumns(
        draw.choice(["y", "y", 1, 4, "2", "age", "é", None]),
        draw.choice([None, None, "yes", "1"]),
        drop=draw.choice([[], [], ["a"], [2]]),
        id=draw.choice([None, None, "id", 1]),
        kinds=dict(draw.sample([*kinds.items()], draw.choice([0, 0, 1, 2]))),
        na=draw.choice([[], [], ["-999", "x"], ["1e999", "0"]]),
    )
    return {
        "columns": columns,
        "format": draw.choice([None, "csv", "csv"] if reader == "table" else [None, "parquet"]),
        "labels": draw.random() < 0.9,
        "chunk_rows": draw.choice([1, 2, 7, 8192]),
        "on_error": draw.choice(["raise", "skip"]),
        "max_errors": draw.choice([0, 1, 5, 10**6]),
        "separator": draw.choice([None, None, None, *",;\t| x-1"]),
        "decimal": draw.choice([None, None, None, ".", ","]),
        "encoding": draw.choice([None, None, None, None, *ENCODINGS]),
    }


def options(reader, draw):
    if reader in ("table", "tables"):
        return table_options(reader, draw)
    categorical = {"city": draw.choice(["onehot", "hash:4", ["Oslo", "Rome"]])}
    columns = Columns("y", draw.choice([None, "yes", "1"]), id="id", categorical=categorical)
    if reader == "svmlight":
        columns = Columns(positive=draw.choice([None, "1"]), zero_based=draw.random() < 0.2)
    return {
        "columns": columns,
        "format": draw.choice([reader, reader, None]),
        "labels": draw.random() < 0.8,
        "chunk_rows": draw.choice([1, 2, 7, 8192]),
        "on_error": draw.choice(["raise", "skip"]),
        "max_errors": draw.choice([0, 1, 5, 10**6]),
    }


def read(data, chosen):
    """Read all, check what is promised of chunks, and resume at one of them."""
    positions = []
    try:
        with open_stream(io.BytesIO(data), **chosen) as stream:
            for chunk in stream:
                check_values(chunk.X)
                assert 0 < chunk.X.shape[0] <= chosen["chunk_rows"]
                assert chunk.y is None or set(chunk.y.tolist()) <= {0, 1}
                positions.append(chunk.position)
        start = Position.from_json(positions[len(positions) // 2].to_json()) if positions else None
        with open_stream(io.BytesIO(data), **chosen, start=start) as stream:
            rest = [chunk.position for chunk in stream]
        assert start is None or rest == positions[len(positions) // 2 + 1 :]
    except ValueError as error:
        check_sentence(str(error))


def check_values(X):
    """Check that numbers are finite and words are words."""
    if isinstance(X, Table):
        for column in X.columns:
            assert len(column) == len(X)
            words = getattr(column, "values", ())
            assert len({*words}) == len(words)
            assert all(word.strip() == word != "" for word in words)
            numbers = column if isinstance(column, np.ndarray) else np.zeros(0)
            assert not np.isinf(numbers).any()
        return
    assert np.isfinite(X if isinstance(X, np.ndarray) else X.data).all()


def read_in_blocks(data, chosen, largest):
    """Read at once and in blocks of a few bytes, and compare."""
    if chosen["format"] is None and data.startswith(b"PAR1"):
        return  # Parquet cannot come in blocks
    slow, whole = outcome(Dribble(data, largest), **chosen), outcome(io.BytesIO(data), **chosen)
    if "Say which encoding" in f"{slow[4]} {whole[4]}":  # of two faults either may be met first
        assert slow[4]
        assert whole[4]
    else:
        assert slow == whole


def check_sentence(text):
    assert text
    assert "\n" not in text


def throw(reader, seed, data):
    """Read one broken input."""
    draw = random.Random(f"{reader} {seed}")
    data = broken(written(draw) if reader == "table" else data, draw)
    chosen = options(reader, draw)
    if reader not in ("parquet", "tables") and draw.random() < 0.1:
        # Only paths and standard input are decompressed, so the packed bytes come as the latter.
        stream = io.BufferedReader(io.BytesIO(compressed(data, draw)))
        sys.stdin = argparse.Namespace(buffer=stream)
        try:
            with open_stream("-", **chosen) as chunks:
                for _ in chunks:
                    pass
        except ValueError as error:
            check_sentence(str(error))
        finally:
            sys.stdin = sys.__stdin__
        return
    if reader not in ("parquet", "tables") and draw.random() < 0.3:
        read_in_blocks(data, chosen, draw.choice([1, 7, 60, 5000]))
    read(data, chosen)


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def run(reader, count, first):
    """Throw many inputs at a reader and return how many failed."""
    data = seed_of(reader)
    for name in READERS:  # an unnamed format may turn out as any of them, and none shall compile
        read(seed_of(name), options(name, random.Random(0)))
    began, before, slowest, failures = time.monotonic(), megabytes(), 0.0, 0
    for seed in range(first, first + count):
        start = time.monotonic()
        signal.alarm(SECONDS)
        try:
            throw(reader, seed, data)
        except Exception as error:  # noqa: BLE001
            failures += 1
            print(f"{reader} --seed {seed}: {type(error).__name__}: {error}")
        finally:
            signal.alarm(0)
        slowest = max(slowest, time.monotonic() - start)
    grown = megabytes() - before
    print(
        f"{reader}: {count} inputs, {failures} failures, slowest {slowest:.2f} s, "
        f"{grown} MB more memory, {time.monotonic() - began:.0f} s"
    )
    return failures + (grown > MEGABYTES)


def guided(reader, arguments):
    """Let coverage guide the input; runs until stopped or until its -runs are done."""
    data = seed_of(reader)

    def one(text):
        draw = random.Random(text[:8])
        read(bytes(text[8:]) or data, options(reader, draw))

    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", choices=READERS, action="append")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first input")
    parser.add_argument("--atheris", action="store_true", help="guided; other options go to it")
    chosen, others = parser.parse_known_args()
    readers = chosen.reader or READERS
    if chosen.atheris:
        guided(readers[0], others)
        return 0
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("too slow")))
    return bool(sum(run(reader, chosen.count, chosen.seed) for reader in readers))


if __name__ == "__main__":
    sys.exit(main())
