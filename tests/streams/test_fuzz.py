"""A little of what ``python tests/tools/fuzz_readers.py --count 100000`` does at length."""

import gc
import tracemalloc

import pytest
from fuzz_readers import READERS, seed_of, throw


@pytest.mark.parametrize("reader", READERS)
def test_broken_input_gives_rows_or_a_sentence(reader):
    data = seed_of(reader)
    for seed in range(300):
        throw(reader, seed, data)


@pytest.mark.parametrize("reader", ["svmlight", "csv", "table"])
def test_nothing_is_held_of_input_that_was_read_or_refused(reader):
    # The process itself may stay large, since the allocator keeps what threads gave back.
    data = seed_of(reader)

    def held():
        for seed in range(100):
            throw(reader, seed, data)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    held()
    tracemalloc.start()
    try:
        before = held()
        assert held() - before < 100 * 1000  # a kilobyte for each input would be a leak
    finally:
        tracemalloc.stop()
