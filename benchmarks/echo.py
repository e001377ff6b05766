"""The bare FastAPI endpoint that the service is compared with: it gives back the body that it gets."""

import sys
from typing import Any

from fastapi import FastAPI, Request, Response
import uvicorn

app = FastAPI()


@app.post("/echo")
async def echo(body: dict[str, Any]) -> dict[str, Any]:
    return body


@app.post("/sent")
async def sent(request: Request, back: int) -> Response:
    """Take a body as it is, and send so many bytes back: what the way costs."""
    await request.body()
    return Response(bytes(back))


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False)
