"""Marks beside names and figures in the report's tables."""

from collections.abc import Sequence

SAMPLE = "†"
FAR = "‡"


def marked(dataset: str, samples: Sequence[str] | frozenset[str]) -> str:
    """Name a data set, with the mark for samples."""
    return f"{dataset} {SAMPLE}" if dataset in samples else dataset


def sample_note(samples: Sequence[str] | frozenset[str]) -> str:
    """Explain the mark for samples where a table has one."""
    return f" {SAMPLE} Only a sample of the data set was at hand." if samples else ""
