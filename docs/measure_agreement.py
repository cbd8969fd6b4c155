"""Print how many figures of studies lie within two standard errors of the paper's.

    python docs/measure_agreement.py docs/study [FOLDER ...]

Folders of earlier versions are read, too: only the columns that are needed must be there.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

from cbrank.study.report.against_paper import agreement_table
from cbrank.study.report.study import Study
from cbrank.study.results import Result
from cbrank.tables import plain


def read(folder):
    """Read the results of a study; numbers that it lacks are NaN."""
    with (folder / "results.csv").open(encoding="utf-8") as file:
        results = [Result.of(defaultdict(str, line)) for line in csv.DictReader(file)]
    done = tuple(result for result in results if result.status == "ok")
    return Study(results=done, failures=(), curves={}, facts={})


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}\n\n{plain(agreement_table(read(Path(name))))}\n")
