"""Kill ``cbrank serve`` at random moments under load, start it again, and look for what is lost.

``python tests/tools/serve_kills.py --rounds 200`` prints what each round did and fails on the first label
that was acknowledged and is not among the events exactly once, on the first row that was to be remembered
and is not, and on the first model that differs in a bit from a replay of the events: that of ``cbrank
replay`` and one of its own, which learns from the events as they come and is never stopped. Clients retry
with their key when an answer is lost. ``--fault`` adds to the kills a write-ahead file that is cut short, a
full disk, a clock set back, a damaged store (serve_faults.py), or models that are replaced by others, of other
columns and labels too, while rows wait and labels come (serve_replacements.py).
"""

import argparse
import collections
import random
import sys
import tempfile

from serve_faults import FAULTS
from served import Launcher
from served_lives import Life

EACH = 20  # rounds with one store


def kill_rounds(launcher, rounds, seed, watch=print):
    """Kill servers in so many rounds, some to a store; return the kills."""
    draw, kills = random.Random(seed), 0
    counts: collections.Counter[str] = collections.Counter()
    for first in range(0, rounds, EACH):
        with tempfile.TemporaryDirectory() as folder:
            plain, keep = first // EACH % 2 == 1, first // (2 * EACH) % 2 == 0
            life = Life(launcher, folder, draw, plain=plain, keep=keep)
            for _ in range(3):
                life.start_and_kill()
            for number in range(first, min(rounds, first + EACH)):
                told = life.round(number)
                kind = ("plain" if plain else "table") + ("" if keep else ", events go")
                watch(f"{number + 1}/{rounds}, {kind}: {told}: nothing lost")
            life.label_all()
            kills += life.kills
            counts += life.ledger.counts
    watch(f"{kills} kills; answers and results: {dict(sorted(counts.items()))}")
    return kills


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fault", choices=["kill", *FAULTS, "all"], default="kill")
    options = parser.parse_args()

    def watch(told):
        print(told, flush=True)

    with Launcher() as launcher:
        if options.fault in {"kill", "all"}:
            kill_rounds(launcher, options.rounds, options.seed, watch)
        for name, fault in FAULTS.items():
            if options.fault in {name, "all"}:
                fault(launcher, options.rounds, options.seed, watch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
