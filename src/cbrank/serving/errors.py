"""Requests that are refused."""

from collections.abc import Mapping
from typing import Any

INTERNAL = "something went wrong inside the service; its log says what."


class Refused(Exception):
    """A request that is refused, with the status and the sentence of its answer.

    Parameters
    ----------
    status : int
        The status of HTTP.
    sentence : str
        What is wrong, and what to do.
    extra : mapping, optional
        What stands in the answer beside the sentence.
    headers : mapping, optional
        Headers of the answer.

    Examples
    --------
    >>> refused = Refused(409, "the id 'a' has a label already.")
    >>> refused.status, refused.answer()
    (409, {'error': "the id 'a' has a label already."})
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.extra, self.headers = dict(extra or {}), dict(headers or {})

    def answer(self) -> dict[str, Any]:
        """Return the body of the answer."""
        return {"error": self.sentence, **self.extra}


def sentence_of(error: Exception | str) -> str:
    """Return the sentence of an error, with a capital.

    Examples
    --------
    >>> sentence_of(ValueError("row 3 has no label."))
    'Row 3 has no label.'
    """
    text = str(error)
    return text[:1].upper() + text[1:]
