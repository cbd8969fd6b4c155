"""Model files of every kind, and forged ones: arrays and facts changed, with a fitting checksum."""

import copy
import io
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from forgery import ODD_NAMES, ODD_VALUES, mutate, small_models
from learners import make
from sklearn.pipeline import Pipeline

from cbrank import AdditiveRanker
from cbrank.modelfile import gather
from cbrank.modelfile.container import pack, unpack
from cbrank.streams import Columns, StreamScaler, TableColumns, open_stream
from cbrank.training import Checkpoint, Every, Model, Progress

TABLE = "id,age,city,plan,page,y\n" + "".join(
    f"r{row},{row % 7},{'abc'[row % 3]},{'pq'[row % 2]},/{row % 5},{row % 2}\n" for row in range(20)
)
TEXT = "".join(f"{row % 2} 1:{row % 7} {2 + row % 3}:1\n" for row in range(20))
ASKED = {"command": "train", "passes": 1}
MEANINGS = {
    "onehot": {"categorical": {"city": "onehot", "page": "onehot"}, "drop": ["plan"]},
    "hash": {"categorical": {"city": "hash:3", "page": "hash:1"}, "drop": ["plan"]},
    "listed": {"categorical": {"plan": ["q", "p"], "city": "onehot"}, "drop": ["page"]},
    "numbers": {"drop": ["city", "plan", "page"]},
}


class Seed(NamedTuple):
    """A sound file, and what its rows look like if it knows."""

    name: str
    data: bytes
    arrays: dict[str, Any]
    facts: dict[str, Any]
    rows: bytes


def packed(arrays, facts):
    """Return the file of arrays and facts as bytes."""
    file = io.BytesIO()
    pack(file, arrays, facts)
    return file.getvalue()


def unpacked(data):
    return unpack(io.BytesIO(data), len(data))


def seed_of(name, data, rows=b""):
    arrays, facts = unpacked(data)
    return Seed(name, data, arrays, facts, rows)


def seeds(folder):
    """Return a small file of every kind."""
    found = [seed_of(name, packed(*gather(model=model))) for name, model in small_models()]
    for kind, ranker in (("standard", "cbr"), ("unit", "cbr-diagonal"), ("maxabs", "uniexp")):
        found.append(seed_of(f"{kind}-{ranker}", packed(*gather(model=_pipeline(kind, ranker)))))
    scales = itertools.cycle([None, "standard", "maxabs", "unit"])
    for meaning, scale in zip(MEANINGS, scales, strict=False):
        for ranker in ("cbr", "cbr-auto-diagonal"):
            model = _trained(TABLE, Columns("y", id="id", **MEANINGS[meaning]), ranker, scale)
            found += _files(f"{meaning}-{ranker}", model, TABLE, folder)
    for ranker, scale in (("cbr-diagonal", "standard"), ("ftrl", None), ("cbr-auto", "unit")):
        found += _files(f"text-{ranker}", _trained(TEXT, Columns(), ranker, scale), TEXT, folder)
    for name, rows in (("curves", TABLE), ("waiting", "".join(TABLE.splitlines(True)[:12]))):
        columns = TableColumns("y", id="id", na=["-999"], kinds={"page": "drop"})
        additive = AdditiveRanker(buffer_size=3, random_state=0, pieces=2)
        model = _learned(Model(additive, None, columns), rows)
        found += _files(f"{name}-additive", model, TABLE, folder)
    return found


def _pipeline(kind, ranker):
    scaler, rows = StreamScaler(kind), np.eye(4)[[0, 1, 2, 3, 0, 1]]
    learned = make(ranker).partial_fit(scaler.learn_transform(rows), [0, 1, 0, 1, 1, 0])
    return Pipeline([("scaler", scaler), ("ranker", learned)])


def _trained(rows, columns, ranker, scale):
    small = {"buffer_size": 3} if ranker.startswith("cbr") else {}
    return _learned(Model(make(ranker, **small), scale and StreamScaler(scale), columns), rows)


def _learned(model, rows):
    for chunk in open_stream(io.BytesIO(rows.encode()), columns=model.columns):
        model.learn(chunk)
    return model


def _files(name, model, rows, folder):
    """Return a model file, and the checkpoint of a run that has read half of the rows."""
    path = folder / "rows"
    path.write_text(rows)
    model.write(folder / "model", last_run={"asked": ASKED, "files": "0", "began_with": None})
    yield seed_of(name, (folder / "model").read_bytes(), rows.encode())
    columns = copy.deepcopy(model.columns)
    with open_stream(path, columns=columns, chunk_rows=10, learn=False) as stream:
        chunk = next(stream)
    checkpoint = Checkpoint(folder / "checkpoint", ASKED, Every())
    checkpoint.write(model, Progress(chunk.position, rows=10, positives=5))
    yield seed_of(f"{name}-checkpoint", checkpoint.path.read_bytes(), rows.encode())


# Forging ------------------------------------------------------------------------------------------

FLOATS = [
    0.0, -0.0, 1.0, -1.0, 3.0, 0.5, 1e9, -1e9, 1e18, 1e100, 1e145, 1e150, 1e160, 1e300, 1e308, -1e308,
    5e-324, 1e-308, 1e-300, math.nan, math.inf,
]  # fmt: skip
INTEGERS = [0, 1, 2, 3, 4, 5, 7, 50, 255, 2**15, 2**31 - 1, 2**31, 2**51, 2**52 - 1, 2**62, -1, -2]
JUNK = [
    *ODD_VALUES, 4, 5, 10**6, -(2**63), 2**63, 1.5, "y", "age", "city", "id", "no", "yes", "1",
    {"waits": True}, {"waits": False}, {"waits": 1}, {"waits": True, "encoder": {}, "stages": 0},
    "hash:24", "hash:1", "onehot", ["a"], [["a"]], {"a": 1}, {"city": "hash:24"}, {"age": "onehot"},
    {"y": ["0", "1"]}, {"city": ["a"] * 50}, "\0", "\ud800", "x" * 5000, "ä€😀",
    {"array": ["<U99999", ["a"] * 5000]}, {"dict": [[1, {"float": "inf"}], [0, 1]]},
]  # fmt: skip
ODD_TYPES = ["<f8", "<f4", "<f2", "<i8", "<i4", "<u1", "<u8", "?"]


def forge(seed, random, others):
    """Return a changed file: its bytes changed, or its arrays and facts."""
    if random.random() < 0.25:
        return mutate(seed.data, random, [other.data for other in others])
    arrays, facts = dict(seed.arrays), copy.deepcopy(seed.facts)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        change = random.choices(_CHANGES, _SHARES)[0]
        try:
            change(arrays, facts, random, others)
        except (LookupError, OverflowError, TypeError, ValueError):
            continue
    try:
        return packed(arrays, facts)
    except (RecursionError, ValueError):
        return mutate(seed.data, random, [other.data for other in others])


def _one(arrays, random):
    return random.choice([name for name in arrays if arrays[name].size])


def _number(arrays, facts, random, others):
    """Change some numbers of an array."""
    name = _one(arrays, random)
    array = arrays[name] = arrays[name].copy()
    value = random.choice(FLOATS if array.dtype.kind == "f" else INTEGERS)
    share = random.random()
    if share < 0.2:
        array[...] = value
    elif share < 0.3:
        array.flat[:: random.randrange(1, 4)] = value
    elif share < 0.4 and array.dtype.kind == "f":
        array *= random.choice([-1.0, 1e-200, 1e100, 1e200])
    else:
        array.flat[random.randrange(array.size)] = value


def _letters(arrays, facts, random, others):
    """Change a byte of some names."""
    texts = [name for name in arrays if arrays[name].dtype == np.uint8 and arrays[name].size]
    name = random.choice(texts)
    array = arrays[name] = arrays[name].copy()
    array[random.randrange(array.size)] = random.choice([*b'"[],a\\0=#', 0, 0x80, 0xC3, 0xFF])


def _shape(arrays, facts, random, others):
    """Give an array another shape."""
    name = _one(arrays, random)
    array, axis = arrays[name], random.randrange(max(1, arrays[name].ndim))
    count = random.choice([0, 1, 2, array.shape[axis] + 1, 2 * array.shape[axis]])
    arrays[name] = random.choice([
        array.ravel,
        lambda: array.T,
        lambda: array[None],
        lambda: array[..., None],
        lambda: np.take(array, np.arange(count) % array.shape[axis], axis),
        lambda: np.delete(array, 0, axis),
        lambda: array.reshape(-1)[0],
    ])()  # fmt: skip


def _type(arrays, facts, random, others):
    """Give an array another type."""
    name = random.choice(list(arrays))
    with np.errstate(all="ignore"):
        arrays[name] = arrays[name].astype(random.choice(ODD_TYPES))


def _name(arrays, facts, random, others):
    """Rename an array, take it away, put it elsewhere or put one beside it."""
    name, other = random.choice(list(arrays)), random.choice(list(arrays))
    random.choice([
        lambda: arrays.pop(name),
        lambda: arrays.update({random.choice([*ODD_NAMES, name + ".x", "x." + name]): arrays.pop(name)}),
        lambda: arrays.update({name: arrays[other], other: arrays[name]}),
        lambda: arrays.update({random.choice([*ODD_NAMES, "junk"]): np.zeros(9, np.uint8)}),
    ])()  # fmt: skip


def _size(arrays, facts, random, others):
    """Give all arrays whose length is a feature's or a buffer's another length, and say so."""
    model = facts["model"]
    own = model["steps"][-1][1] if "steps" in model else model
    said = random.choice(["n_features", "buffer_size"])
    place = own if said == "n_features" else own["began_with"]
    old, new = place[said], random.choice([1, 2, 5, 9])
    place[said] = new
    for name, array in arrays.items():
        for axis, length in enumerate(array.shape):
            if length == old and random.random() < 0.95:
                arrays[name] = np.take(arrays[name], np.arange(new) % old, axis)


def _junk(arrays, facts, random, others):
    """Put junk at any place of the facts, or take something away."""
    believed = [part for part in ("model", "columns", "run") if part in facts]
    path = [random.choice(believed if random.random() < 0.9 else list(facts))]
    value = facts[path[0]]
    while isinstance(value, dict | list) and value and random.random() < 0.92:
        path.append(random.choice(list(value) if isinstance(value, dict) else range(len(value))))
        value = value[path[-1]]
    holder = facts
    for key in path[:-1]:
        holder = holder[key]
    action = random.random()
    if action < 0.15:
        del holder[path[-1]]
    elif action < 0.2 and isinstance(holder, dict):
        holder[random.choice(ODD_NAMES)] = holder.pop(path[-1])
    elif action < 0.25:
        deep = []
        for _ in range(random.choice([10, 17, 400])):
            deep = random.choice([[deep], {"a": deep}])
        holder[path[-1]] = deep
    else:
        holder[path[-1]] = copy.deepcopy(random.choice(JUNK))


def _graft(arrays, facts, random, others):
    """Take the model, the columns or the scaler of another file."""
    other, part = random.choice(others), random.choice(["model", "columns", "model.0", "run"])
    for name in [name for name in arrays if name.startswith(f"{part}.")]:
        del arrays[name]
    arrays.update(
        {name: array for name, array in other.arrays.items() if name.startswith(f"{part}.")}
    )
    if part != "model.0":
        facts[part] = copy.deepcopy(other.facts[part])
    else:
        facts["model"]["steps"][0] = copy.deepcopy(other.facts["model"]["steps"][0])


_CHANGES = [_number, _letters, _shape, _type, _name, _size, _junk, _graft]
_SHARES = [8, 1, 2, 1, 1, 2, 9, 2]
