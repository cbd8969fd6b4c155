"""An endpoint that decodes JSON and encodes it again, on the stack of ``cbrank serve``.

``python -m benchmarks.serving.echo PORT``
"""

import sys

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def echo(request: Request) -> Response:
    """Answer with what was sent."""
    content = msgspec.json.encode(msgspec.json.decode(await request.body()))
    return Response(content, media_type="application/json")


app = Starlette(routes=[Route("/echo", echo, methods=["POST"])])


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
    )
