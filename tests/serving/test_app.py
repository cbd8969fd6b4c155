"""What is refused where JSON is read, and by Starlette."""

import asyncio
import json

import pytest
from starlette.exceptions import HTTPException

from cbrank.serving.app import App, http_response, internal_response
from cbrank.serving.counts import Counts
from cbrank.serving.errors import Refused
from cbrank.serving.limits import Limits
from cbrank.serving.memory import Memory


@pytest.mark.parametrize("path", ["/score", "/learn"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b'{"rows": "\xed\xa0\x80"}',
        b'{"rows": 1, "rows": "\xff"}',
        b'{"rows": [{"\xff": 1}]}',
        b'{"rows": [{"a": "\\ud800"}]}',
        b'{"rows": [{"a": [1]}]}',
        b'{"rows": [{"a": 1e999999}]}',
        b'{"rows": [1]}',
    ],
)
def test_a_body_that_is_not_what_is_asked_for_is_refused_in_a_sentence(path, body):
    class Unasked:
        """A service that nothing may reach."""

    state = {"body": body, "memory": Memory(10_000, Counts()).reservation()}
    with pytest.raises(Refused) as refused:
        asyncio.run(
            App.__call__(
                unguarded(Unasked()),
                {"type": "http", "path": path, "state": state, "headers": []},
                None,
                None,
            )
        )
    assert refused.value.status == 400
    assert refused.value.sentence.endswith(".")


def unguarded(service):
    app = App.__new__(App)
    app.service, app.limits = service, Limits()
    app._hot = {"/score": app._score, "/learn": app._learn}
    return app


def test_what_starlette_refuses_is_json():
    response = asyncio.run(http_response(None, HTTPException(404, headers={"x-a": "b"})))
    assert (response.status_code, response.headers["x-a"]) == (404, "b")
    assert json.loads(response.body) == {"error": "there is nothing at this path."}
    assert asyncio.run(internal_response(None, OSError("secret"))).status_code == 500
