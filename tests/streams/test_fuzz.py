"""A little of what ``python tests/tools/fuzz_readers.py --count 100000`` does at length."""

import pytest
from fuzz_readers import READERS, seed_of, throw


@pytest.mark.parametrize("reader", READERS)
def test_broken_input_gives_rows_or_a_sentence(reader):
    data = seed_of(reader)
    for seed in range(300):
        throw(reader, seed, data)
