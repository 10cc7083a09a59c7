"""A gateway to a slow model: at most a few answers at once, over all processes, and a fair line in front.

    uvicorn app:app                                               # one process
    FAIRQ_URL=redis://localhost uvicorn app:app --workers 2       # any number, on any number of machines
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from pathlib import Path
from typing import Any, AsyncIterator, Set

import fairq
from fairq.asgi import LimitMiddleware
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import model
from corpus import retrieve

LIMIT = int(os.environ.get("GATEWAY_LIMIT", "3"))
MAX_QUEUE = int(os.environ.get("GATEWAY_MAX_QUEUE", "12"))
MAX_WAIT = float(os.environ.get("GATEWAY_MAX_WAIT", "30"))
STATIC = Path(__file__).parent / "static"

client = fairq.Client(os.environ.get("FAIRQ_URL") or "memory:")
chat = client.limiter("rag:chat", limit=LIMIT, max_queue=MAX_QUEUE, max_wait=MAX_WAIT)


async def ask(request: Request) -> StreamingResponse:
    """Runs under a permit, and need not know it: the middleware below waits, shows the place in line, and gives back."""
    question = request.query_params.get("q", "")
    if request.method == "POST":
        question = (await request.body()).decode("utf-8", "replace")
    return StreamingResponse(answer(question[:500], request.scope["fairq.permit"]), media_type="text/event-stream")


async def answer(question: str, permit: fairq.Permit) -> AsyncIterator[str]:
    """The events of one answer."""
    yield event("start", fence=permit.fence, order=permit.order)
    passages = retrieve(question)
    yield event("sources", passages=[passage._asdict() for passage in passages])
    async for token in model.stream(question, passages):
        yield event("token", text=token)
    yield event("done")


def event(name: str, **data: Any) -> str:
    """An event for the page. `at`, our clock, lets load.py count how many ran at once."""
    return f"event: {name}\ndata: {json.dumps({**data, 'at': time.time()})}\n\n"


async def status(request: Request) -> JSONResponse:
    """What the panel shows."""
    try:
        now = await chat.status_async()
    except fairq.NoSuchLimiter:  # nobody has asked yet
        idle = {"limit": LIMIT, "running": 0, "waiting": 0, "estimate": 0}
        return JSONResponse({**idle, "max_queue": MAX_QUEUE, "processes": 1})
    except fairq.Error as error:
        return JSONResponse({"error": str(error)}, 503)
    shown = {"limit": now.limit, "running": now.used, "waiting": now.waiting, "estimate": now.estimate}
    max_queue = None if now.max_queue == math.inf else now.max_queue
    return JSONResponse({**shown, "max_queue": max_queue, "processes": now.instances})


# --- Only for playing: askers without a browser, which opens no more than six connections to a server.

_askers: Set[asyncio.Task[None]] = set()


async def open_askers(request: Request) -> JSONResponse:
    """Ten more stand in line, as if others had asked."""
    for _ in range(10):
        task = asyncio.create_task(asker())
        _askers.add(task)
        task.add_done_callback(_askers.discard)
    return JSONResponse({"askers": len(_askers)})


async def asker() -> None:
    """Holds a permit as an answer does."""
    question = "How are crashes and outages handled?"
    try:
        async with chat.acquire_async(label="asker"):
            async for _ in model.stream(question, retrieve(question)):
                pass
    except fairq.Error:
        pass  # the line is full, or the wait too long


async def page(request: Request) -> FileResponse:
    """The page."""
    return FileResponse(STATIC / "index.html")


app = Starlette(
    routes=[
        Route("/", page),
        Route("/ask", ask, methods=["GET", "POST"]),
        Route("/status", status),
        Route("/askers", open_askers, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ],
    middleware=[Middleware(LimitMiddleware, limiter=chat, when="/ask", positions=True)],
)
