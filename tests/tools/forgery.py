"""Model files taken apart, changed and put together again with a checksum that fits."""

import hashlib
import io
import json
import math
import struct

import numpy as np
from learners import RANKERS, make
from scipy import sparse

from cbrank.modelfile import gather, restore
from cbrank.modelfile.container import _DIGITS, _OPENING, unpack, write

ODD_NUMBERS = [0, 1, -1, 2, 3, 7, 50, 251, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**64, 10**30]
ODD_VALUES = [
    *ODD_NUMBERS, None, True, False, 0.5, -0.0, 1e308, "", "auto", "full", "balanced", "nan", "a.b",
    [], {}, [[]], [1], {"float": "nan"}, {"float": "inf"}, {"bytes": "00ff"}, {"dict": [[1, 2]]},
    {"array": ["<i8", [0, 1]]}, {"array": ["|O", ["a", 1]]}, {"array": ["<f4", [0.5, 1e300]]},
    {"array": ["<U99999", ["a", "b"]]}, {"numpy": ["<f8", 0.5]}, {"numpy": ["|O", 1]},
    {"tuple": [1, 2]}, {"random_state": [[0] * 624, 624, 0, 0.0]}, {"random_state": [1]},
    "Pipeline", "CBRanker", "OAMRanker", "OPAUCRanker", "F64", "U8", "BOOL", "Z9", [2, 4], [0, 0],
]  # fmt: skip
ODD_NAMES = [
    "", "C", "rank", "average", "model", "class", "model.buffer.rows", "model.names.ends", "front", "learners",
    "model.front.inverse", "model.front.rows", "model.model2.mu",
]  # fmt: skip
ODD_BYTES = [
    struct.pack("<d", math.nan), struct.pack("<d", math.inf), struct.pack("<d", 1e308),
    struct.pack("<q", -1), struct.pack("<q", 2**63 - 1), struct.pack("<q", 51), b"\xff", b'"', b"{",
    b"[" * 5000, b'{"a":' * 3000, b"9" * 5000, b"\\u0000", b"\x00" * 64, b",", b"1e999", b"NaN",
]  # fmt: skip


def seen_by(ranker, *, width=4, rows=20):
    """A ranker that has learned a few rows, dense or sparse as it likes them."""
    X, y = some_rows(width, rows)
    return ranker.partial_fit(X if ranker.takes_dense_rows() else sparse.csr_array(X), y)


def some_rows(width, rows):
    """A few rows with gaps, and their labels."""
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((rows, width)).round(2), np.arange(rows) % 2
    X[rng.random_sample(X.shape) < 0.4] = 0.0
    return X, y


def small_models():
    """One small model of every kind."""
    for name in RANKERS:
        small = {"buffer_size": 3} if hasattr(RANKERS[name], "buffer_size") else {}
        yield name, seen_by(make(name, **small))
    yield "labels", make("oam", buffer_size=2).partial_fit([[0.0], [1.0]], ["no", "yes"])
    random = np.random.RandomState(1)
    weighted = make("cbr", buffer_size=2, random_state=random, class_weight={0: 1.0, 1: 2.0})
    yield "weights", seen_by(weighted)
    # In the files of these rows have waited long enough, and there are several learners: three, and two.
    yield "scaled", seen_by(make("cbr-auto", buffer_size=3), rows=70)
    yield "shuffled", make("cbr-auto", buffer_size=3).learn_shuffled(*some_rows(4, 70))
    yield "dense", make("cbr-diagonal", buffer_size=2).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])


def bytes_of(model, folder):
    path = folder / "model"
    write(path, *gather(model=model))
    return path.read_bytes()


def opened(data):
    """Open a model file given as bytes."""
    return restore("model", *unpack(io.BytesIO(data), len(data)))


def sign(data):
    """Put the checksum right, if there is a place for one."""
    if data[8:].startswith(_OPENING) and len(data) >= _DIGITS.stop:
        zeroed = data[: _DIGITS.start] + b"0" * 64 + data[_DIGITS.stop :]
        digits = hashlib.sha256(zeroed).hexdigest().encode()
        return zeroed[: _DIGITS.start] + digits + zeroed[_DIGITS.stop :]
    return data


def take_apart(data):
    """Return the descriptions of the arrays, the facts, and the bytes of the arrays."""
    end = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:end])
    facts = json.loads(entries.pop("__metadata__")["cbrank"])
    return entries, facts, data[end:]


def put_together(entries, facts, tail):
    """Return the file with a fitting checksum; `entries` may be text."""
    facts = json.dumps({**facts, "sha256": "0" * 64}, separators=(",", ":"))
    entries = entries if isinstance(entries, str) else json.dumps(entries)[1:-1]
    metadata = json.dumps({"__metadata__": {"cbrank": facts}}, separators=(",", ":"))
    header = f"{metadata[:-1]}{',' if entries else ''}{entries}}}".encode()
    return sign(len(header).to_bytes(8, "little") + header + tail)


def mutate(data, random, others):
    """Return a changed file; most have a checksum that fits, so that they are looked into."""
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        data = random.choice(_MUTATIONS)(data, random, others)
    return sign(data) if random.random() < 0.7 else data


def _flip(data, random, others):
    changed = bytearray(data or b"\0")
    for _ in range(random.choice([1, 1, 1, 4, 30])):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _cut(data, random, others):
    return data[: random.randrange(len(data) + 1)]


def _splice(data, random, others):
    other = random.choice(others)
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other)) :]


def _insert(data, random, others):
    at, odd = random.randrange(len(data) + 1), random.choice(ODD_BYTES)
    return data[:at] + odd + data[at + random.choice([0, 1, len(odd)]) :]


def _overwrite_number(data, random, others):
    """Change a number of an array."""
    start = 8 + int.from_bytes(data[:8], "little")
    if start >= len(data):
        return data
    at = start + random.randrange(len(data) - start) // 8 * 8
    odd = random.choice(ODD_BYTES[:6])
    return data[:at] + odd + data[at + 8 :]


def _edit_header(data, random, others):
    """Change a value of the header."""
    try:
        entries, facts, tail = take_apart(data)
        _edit(random.choice([entries, facts, facts["model"]]), random)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return data
    return put_together(entries, facts, tail)


def _edit(value, random):
    """Change something deep in a JSON value: take it out, give it another name or another value."""
    key = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
    inner, action = value[key], random.random()
    if isinstance(inner, dict | list) and inner and action < 0.8:
        _edit(inner, random)
    elif action < 0.85:
        del value[key]
    elif action < 0.9 and isinstance(value, dict):
        value[random.choice(ODD_NAMES)] = inner
    else:
        value[key] = random.choice(ODD_VALUES)


_MUTATIONS = [
    _flip, _flip, _cut, _splice, _insert, _overwrite_number, _edit_header, _edit_header,
]  # fmt: skip
