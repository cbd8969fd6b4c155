"""Tables as they come, turned into features for a linear ranker."""

from cbrank.features.encoder import TableEncoder
from cbrank.features.table import Table, Times, Words

__all__ = ["Table", "TableEncoder", "Times", "Words"]
