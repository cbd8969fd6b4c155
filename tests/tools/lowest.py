"""Whether an environment has the lowest versions that pyproject.toml promises, as ``make lowest`` makes it.

``python tests/tools/lowest.py`` fails with the libraries that are newer: where the lowest versions of two of them
do not go together, a higher one is what is promised.
"""

import importlib.metadata
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def promised():
    """Yield the requirements of cbrank, of its extras and of its tests that this environment has to meet."""
    project = tomllib.loads(PROJECT.read_text())
    groups = project["dependency-groups"]
    texts = [*project["project"]["dependencies"], *groups["tables"]]
    texts += [
        text for extra in project["project"]["optional-dependencies"].values() for text in extra
    ]
    texts += [text for text in groups["test"] if isinstance(text, str)]
    for requirement in map(Requirement, texts):
        if requirement.name != "cbrank" and (
            not requirement.marker or requirement.marker.evaluate()
        ):
            yield requirement


def newer():
    """Return the libraries that are newer than the lowest version promised."""
    found = []
    for requirement in promised():
        lowest = Version(next(iter(requirement.specifier)).version)
        installed = Version(importlib.metadata.version(requirement.name))
        if (installed.major, installed.minor) != (lowest.major, lowest.minor):
            found.append(f"{requirement.name} {installed} in place of {lowest}")
    return found


if __name__ == "__main__":
    raise SystemExit("\n".join(newer()))
