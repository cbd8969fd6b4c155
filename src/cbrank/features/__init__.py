"""Tables as they come, turned into features for a linear ranker."""

from typing import TYPE_CHECKING, Any

from cbrank.features.table import Table, Times, Words

if TYPE_CHECKING:
    from cbrank.features.encoder import TableEncoder

__all__ = ["Table", "TableEncoder", "Times", "Words"]


def __getattr__(name: str) -> Any:
    """Import the encoder at its first use: readers of files need tables only."""
    if name != "TableEncoder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cbrank.features.encoder import TableEncoder  # noqa: PLC0415

    return TableEncoder
