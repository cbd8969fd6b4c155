"""The store: one process at a time, damage that is told, and a clock that never goes back."""

import contextlib
import hashlib
import shutil
import sqlite3
import time
from typing import cast

import pytest
from click.testing import CliRunner
from fuzz_store import fuzz

import cbrank
from cbrank.cli import main
from cbrank.serving.database import KINDS, LAST
from cbrank.serving.served import begun, faults_of, load
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


def edit(folder, *statements):
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


@pytest.mark.parametrize(
    "change",
    [
        "row = replace(row, '2', '3')",
        "label = '0'",
        "number = 21",
        "chunk = 12",
        "time = 7.0",
        "id = 'b'",
    ],
)
def test_a_changed_event_is_noticed_when_it_is_learned_from(folder, change):
    edit(folder, f"UPDATE events SET {change} WHERE number = 20")
    store = Store.open(folder)
    with pytest.raises(StoreError, match=r"row 2. of events is not as it was written.*backup"):
        list(store.chunks(11))
    store.close()
    assert "not as it was written" in check(folder).output


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE ids SET row = replace(row, '2', '3') WHERE id = 'a'",
        "UPDATE ids SET state = 1 WHERE id = 'a'",
        "UPDATE ids SET ends = 8.0 WHERE id = 'a'",
        "UPDATE ids SET id = 'c' WHERE id = 'a'",
        "UPDATE ids SET row = CAST(row AS TEXT) WHERE id = 'a'",
        "UPDATE answers SET digest = x'01'",
        "UPDATE answers SET key = 'l'",
        "UPDATE answers SET owner = x'ff'",
        "UPDATE answers SET time = 5.0",
        "UPDATE snapshots SET event = event - 1 WHERE number = 3",
        "UPDATE snapshots SET event = 'abc' WHERE number = 3",
        "UPDATE snapshots SET file = CAST(x'6d6f64656cff' AS TEXT) WHERE number = 3",
        "UPDATE snapshots SET file = x'6d6f64' WHERE number = 3",
        "UPDATE snapshots SET given = 1 WHERE number = 3",
        "UPDATE facts SET value = 7.0 WHERE name = 'time'",
        "UPDATE facts SET value = '7' WHERE name = 'sum'",
        "DELETE FROM facts",
        "DELETE FROM facts WHERE name = 'number'",
        "DELETE FROM facts WHERE name = 'sum'",
        "DELETE FROM events WHERE number = 20",
        "DELETE FROM events WHERE number = 1",
        "DELETE FROM ids WHERE id = 'a'",
        "DELETE FROM answers",
        "DELETE FROM snapshots WHERE number = 3",
        "DELETE FROM snapshots",
        "INSERT INTO ids SELECT 'c', state, ends, row, crc FROM ids WHERE id = 'a'",
    ],
)
def test_a_start_refuses_whatever_was_changed_added_or_removed(folder, change):
    store = Store.open(folder)
    with store.transaction():
        store.remember([("a", 9.0, b'{"1": 2}'), ("b", 9.0, b'{"1": 2}')])
        store.keep_answer("", "k", b"0", 4.0, b"{}")
        store.set_fact("time", 4.0)
    store.close()
    edit(folder, change)
    for action in (Store.open, Store.look_into):
        with pytest.raises(StoreError, match=r"is damaged .*backup"):
            action(folder)
    assert check(folder).exit_code == 1


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "CREATE VIEW v AS SELECT * FROM ids",
        "CREATE INDEX events_by_label ON events (label)",
        "DROP INDEX ids_by_end",
        "ALTER TABLE events ADD COLUMN more",
    ],
)
def test_nothing_of_another_schema_is_executed(folder, statement):
    edit(folder, statement)
    for action in (Store.open, Store.look_into):
        with pytest.raises(StoreError, match="tables, indexes or triggers are not those"):
            action(folder)


def test_an_endless_view_in_the_place_of_a_table_is_refused(folder):
    endless = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r)"
    view = f"CREATE VIEW facts AS {endless} SELECT 'a' AS name, i AS value, 1 AS crc FROM r"
    edit(folder, "ALTER TABLE facts RENAME TO f", view)
    with pytest.raises(StoreError, match="tables, indexes or triggers are not those"):
        Store.open(folder)


def test_types_are_checked_even_where_checksums_are_right(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "ids", {(str, int, float, str)})
        store = Store.open(folder)
        with store.transaction():
            store.remember([("a", 9.0, cast("bytes", "a text"))])
        store.close()
    with pytest.raises(StoreError, match="a row of ids is not as it was written"):
        Store.open(folder)


def test_values_that_are_too_long_are_not_read(folder, monkeypatch):
    monkeypatch.setattr("cbrank.serving.database._LONGEST", 2**20)
    edit(folder, "INSERT INTO ids VALUES ('a', 0, 9.0, zeroblob(2000000), 0)")
    with pytest.raises(StoreError, match="too big"):
        Store.open(folder)


def test_events_that_are_missing_are_noticed_even_where_checksums_are_right(folder):
    store = Store.open(folder)
    with store.transaction():
        store.add_events([(22, 22, 2.0, None, "1", b'{"1": 2}')])
    with pytest.raises(StoreError, match="event 21 is missing"):
        list(store.chunks(11))
    store.close()
    assert "event 21 is missing" in check(folder).output


def test_a_row_that_is_damaged_while_the_service_runs_stops_its_transaction(folder):
    store = Store.open(folder)
    with store.transaction():
        store.remember([("a", 9.0, b'{"1": 2}'), ("b", 9.0, b'{"1": 2}')])
    edit(folder, "UPDATE ids SET row = replace(row, '2', '3') WHERE id = 'a'")
    assert store.find_id("b") == (0, 9.0, b'{"1": 2}')
    for look in (lambda: store.find_id("a"), lambda: store.ended(10.0, 5)):
        with pytest.raises(NotStoredError, match="not as it was written"), store.transaction():
            look()
    store.close()


def test_transactions_that_a_damaged_write_ahead_file_has_lost_are_noticed(folder, tmp_path):
    store = Store.open(folder)
    for number in range(3):
        with store.transaction():
            store.set_fact("time", float(number))
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*-shm", "*lock"))
    store.close()
    size = (copy / f"{DATABASE}-wal").stat().st_size
    for at in (40, size // 2, size - 100):  # SQLite ignores what comes after, without an error
        flipped = shutil.copytree(copy, tmp_path / str(at))
        wal = bytearray((flipped / f"{DATABASE}-wal").read_bytes())
        wal[at] ^= 1
        (flipped / f"{DATABASE}-wal").write_bytes(wal)
        for action in (Store.open, Store.look_into):
            with pytest.raises(
                StoreError, match=r"transactions, and 9 were made.*remove .*store\.last"
            ):
                action(flipped)
        assert (flipped / f"{DATABASE}-wal").read_bytes() == wal  # something may be brought back
        (flipped / LAST).unlink()
        Store.open(flipped).close()


def test_a_snapshot_is_not_taken_for_another_and_the_last_good_one_is_kept(folder, tmp_path):
    store = Store.open(folder)
    newest, good, _ = store.snapshots()
    other = Model(cbrank.CBRanker().partial_fit([[5.0], [1.0]], [0, 1]), None, made_model().columns)
    given = (folder / good.file).read_bytes()
    other.write(folder / newest.file)
    with store.transaction():
        store.set_fact("model", hashlib.sha256(given).hexdigest())
    served = begun(store, given, tmp_path / "a.model", keep_events=False)
    assert served.model.ranker.n_seen_.sum() == 12
    assert store.snapshots()[0] == good
    store.add_snapshot(served.model, 5.0, given=False, keep_events=False)
    assert [one.file for one in store.snapshots()][1:] == [good.file]
    assert [(folder / one.file).exists() for one in store.snapshots()] == [True, True]
    store.close()


def test_nothing_is_deleted_before_a_start_has_succeeded(folder, tmp_path):
    before = sorted(folder.glob("model-*"))
    spare = folder / "model-000000000099-spare.cbrank"
    shutil.copy(before[0], spare)
    for path in before:
        path.write_bytes(b"damaged")
    store = Store.open(folder)
    with store.transaction():
        store.set_fact("model", hashlib.sha256(b"").hexdigest())
    with pytest.raises(StoreError, match="none of its 3 snapshots is good"):
        begun(store, b"", tmp_path / "a.model", keep_events=False)
    assert spare.exists()
    store.close()


def test_single_flipped_bits_and_random_edits_are_refused_or_change_nothing():
    outcomes = fuzz(40, seed=3)
    assert {outcome for _, outcome in outcomes} >= {"refused", "served right"}


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
    assert faults_of(again) == []
    again.close()


def test_the_clock_never_goes_back(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    clock = Clock()
    first = clock.now()
    monkeypatch.setattr(time, "time", lambda: 10.0)
    assert 1000.0 <= first <= clock.now() < 1010.0
    assert Clock(last=1000.0).now() >= 1000.0
