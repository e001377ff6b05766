"""The bare FastAPI endpoint that the service is compared with: it gives back the body that it gets."""

import sys
from typing import Any

from fastapi import FastAPI
import uvicorn

app = FastAPI()


@app.post("/echo")
async def echo(body: dict[str, Any]) -> dict[str, Any]:
    return body


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False)
