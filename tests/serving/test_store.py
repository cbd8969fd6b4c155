"""The store: one process at a time, damage that is told, and a clock that never goes back."""

import contextlib
import shutil
import sqlite3
import time

import pytest
from click.testing import CliRunner

import cbrank
from cbrank.cli import main
from cbrank.serving.served import load
from cbrank.serving.store import DATABASE, Clock, NotStoredError, Store, StoreError
from cbrank.training import Model
from cbrank.training.model import columns_of


def made_model():
    ranker = cbrank.CBRanker().partial_fit([[0.0], [1.0]], [0, 1])
    return Model(ranker, None, columns_of(ranker))


@pytest.fixture
def folder(tmp_path):
    """A store with two snapshots and some events."""
    folder = tmp_path / "store"
    store = Store.open(folder, create=True)
    model = made_model()
    store.add_snapshot(model, 1.0, given=True, keep_events=True)
    for first in (1, 11):
        with store.transaction():
            rows = range(first, first + 10)
            store.add_events([(n, first, 2.0, None, "1", b'{"1": 2}') for n in rows])
        store.add_snapshot(model, 3.0, given=False, keep_events=True)
    store.close()
    return folder


def check(folder):
    return CliRunner().invoke(main, ["serve", "--check", str(folder)])


def test_one_process_at_a_time(folder):
    store = Store.open(folder)
    with pytest.raises(ValueError, match=r"in use by process .* a store of its own"):
        Store.open(folder)
    looked = Store.look_into(folder)  # to read it does no harm
    assert looked.count_events() == 20
    with pytest.raises(NotStoredError), looked.transaction():
        looked.set_fact("a", 1)
    looked.close()
    store.close()
    Store.open(folder).close()


def test_a_transaction_is_made_whole_or_not_at_all(folder):
    store = Store.open(folder)

    def change(number):
        with store.transaction():
            store.set_fact("a", 1)
            store.add_events([(number, 1, 2.0, None, "1", b"{}")])
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        change(21)
    with pytest.raises(NotStoredError, match="UNIQUE"):
        change(20)
    assert store.fact("a") is None
    with store.transaction():
        store.set_fact("a", 1)
    assert store.fact("a") == 1
    store.close()


def test_what_is_sound_is_said_to_be(folder):
    found = check(folder)
    assert found.exit_code == 0
    assert "last event                20" in found.output
    assert found.output.endswith("is sound.\n")


def test_a_damaged_snapshot_is_passed_over_and_told(folder):
    store = Store.open(folder)
    newest, *older = store.snapshots()
    path = folder / newest.file
    whole = bytearray(path.read_bytes())
    whole[-3] ^= 1
    path.write_bytes(whole)
    _, snapshot, faults = load(store)
    assert snapshot == older[0]
    assert "damaged" in faults[0]
    assert [len(chunk) for chunk in store.chunks(snapshot.event)] == [10]
    assert "damaged" in check(folder).output
    for one in older:
        (folder / one.file).unlink()
    with pytest.raises(StoreError, match=r"none of its 3 snapshots is good.*missing.*backup"):
        load(store)
    store.close()
    assert check(folder).exit_code == 1


def test_a_damaged_database_is_refused_with_what_to_do(folder):
    path = folder / DATABASE
    sound = path.read_bytes()
    path.write_bytes(b"no database, but long enough to be taken for one" * 100)
    for action in (Store.open, Store.look_into):
        with pytest.raises(StoreError, match=r"damaged.*backup"):
            action(folder)
    path.write_bytes(sound[:8192] + bytes(len(sound) - 8192))
    with pytest.raises(StoreError, match=r"damaged|missing|is good"):
        load(Store.open(folder))
    assert check(folder).exit_code == 1
    path.write_bytes(sound)
    assert check(folder).exit_code == 0


@pytest.mark.parametrize(
    "change",
    ["row = replace(row, '2', '3')", "label = '0'", "number = 21", "chunk = 12"],
)
def test_a_bit_that_flips_inside_an_event_is_noticed(folder, change):
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as database:
        database.execute(f"UPDATE events SET {change} WHERE number = 20")
        database.commit()
    store = Store.open(folder)
    with pytest.raises(StoreError, match=r"event 2. is not as it was written.*backup"):
        list(store.chunks(11))
    store.close()
    assert "not as it was written" in check(folder).output


def test_a_bit_that_flips_inside_a_row_that_waits_is_noticed(folder):
    store = Store.open(folder)
    with store.transaction():
        store.remember([("a", 9.0, b'{"1": 2}'), ("b", 9.0, b'{"1": 2}')])
    store.close()
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as database:
        database.execute("UPDATE ids SET row = replace(row, '2', '3') WHERE id = 'a'")
        database.commit()
    assert "not as it was written" in check(folder).output
    store = Store.open(folder)
    assert store.find_id("b") == (0, 9.0, b'{"1": 2}')
    for look in (lambda: store.find_id("a"), lambda: store.ended(10.0, 5)):
        with pytest.raises(NotStoredError, match="not as it was written"), store.transaction():
            look()
    store.close()


def test_what_is_no_store_is_refused(folder, tmp_path):
    with pytest.raises(StoreError, match="no store of a service"):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match="no store of a service"):
        Store.look_into(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    with sqlite3.connect(other / DATABASE) as database:
        database.execute("CREATE TABLE cats (name)")
    with pytest.raises(StoreError, match="not that of a service"):
        Store.open(other, create=True)
    later = tmp_path / "later"
    shutil.copytree(folder, later)
    with sqlite3.connect(later / DATABASE) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(StoreError, match="later version"):
        Store.open(later)
    (folder / DATABASE).unlink()
    with pytest.raises(StoreError, match=r"has snapshots, and its store\.db is empty"):
        Store.open(folder, create=True)


def test_an_empty_file_in_the_place_of_the_database_is_refused(folder):
    (folder / DATABASE).write_bytes(b"")
    with pytest.raises(StoreError, match=r"its store\.db is empty"):
        Store.open(folder, create=True)


def test_events_go_when_two_snapshots_have_them(tmp_path):
    store, model = Store.open(tmp_path / "store", create=True), made_model()
    store.add_snapshot(model, 1.0, given=True, keep_events=False)
    kept = []
    for first in (1, 11, 21):
        with store.transaction():
            rows = range(first, first + 10)
            store.add_events([(n, first, 2.0, None, "1", b"{}") for n in rows])
        store.add_snapshot(model, 3.0, given=False, keep_events=False)
        kept.append((store.count_events(), len([*store.folder.glob("model-*")])))
    assert kept == [(10, 2), (10, 2), (10, 2)]
    assert store.last_event() == (30, 21)
    (store.folder / "model-000000000099-killed.cbrank").write_bytes(b"half")
    (store.folder / ".cbrank-half.tmp").write_bytes(b"half")
    store.tidy()
    assert len([*store.folder.glob("model-*")]) == 2
    assert not [*store.folder.glob(".cbrank-*")]
    store.close()


def test_a_snapshot_survives_the_loss_of_the_write_ahead_file(tmp_path):
    store, model = Store.open(tmp_path / "store", create=True), made_model()
    for _ in range(3):
        store.add_snapshot(model, 1.0, given=False, keep_events=False)
    copy = tmp_path / "copy"
    shutil.copytree(store.folder, copy, ignore=shutil.ignore_patterns("*-wal", "*-shm", "*lock"))
    store.close()
    again = Store.open(copy)
    assert len(again.snapshots()) == 2
    assert again.faults() == []
    again.close()


def test_the_clock_never_goes_back(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    clock = Clock()
    first = clock.now()
    monkeypatch.setattr(time, "time", lambda: 10.0)
    assert 1000.0 <= first <= clock.now() < 1010.0
    assert Clock(last=1000.0).now() >= 1000.0
