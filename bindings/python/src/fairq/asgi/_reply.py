"""The way to the client, on which the line speaks first, then the application."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Tuple

from ._events import Rejection, event, log
from ._types import Message, Send

Headers = List[Tuple[bytes, bytes]]

_STREAM: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx would collect the events
]
_JSON: Headers = [(b"content-type", b"application/json")]


class Reply:
    """One response, in at most two parts: events of the line, and what the application says."""

    def __init__(self, send: Send, when_ended: Callable[[], None]) -> None:
        self._send = send
        self._when_ended = when_ended
        self._ended = False
        self._muted = False
        self.waited = False
        """The line has begun an event stream."""
        self.started = False
        """The application has begun its response."""

    async def tell(self, text: str, more: bool = True) -> None:
        """Events of the line. With the first of them begins the response."""
        if not self.waited:
            self.waited = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        self._ended = not more
        await self._send({"type": "http.response.body", "body": text.encode(), "more_body": more})

    async def refuse(self, refusal: Rejection, as_event: bool) -> None:
        """Tells why there is no permit."""
        if self.waited:
            return await self.tell(refusal.event(), more=False)
        headers = list(_STREAM if as_event else _JSON)
        headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
        text = refusal.event() if as_event else json.dumps(refusal.data())
        await self._send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": text.encode(), "more_body": False})
        return None

    async def send(self, message: Message) -> None:
        """What the application calls."""
        if message["type"] == "http.response.start":
            self.started = True
            if self.waited:
                return await self._continue(message)
        elif self._muted or (self.waited and message["type"] != "http.response.body"):
            return None
        await self._send(message)
        if _is_last(message):
            self._ended = True
            self._when_ended()
        return None

    async def _continue(self, start: Message) -> None:
        """The application's response goes into the stream that has begun, where only another event stream fits."""
        if start["status"] == 200 and _is_plain_event_stream(start):
            return
        self._muted = True
        log.error("who waited with positions cannot be given a response that is no event stream: %s", start["status"])
        await self._fail(start["status"], "The answer is no event stream.")

    async def finish(self) -> None:
        """The application has ended. If it has said nothing, the stream that has begun needs an end."""
        if self.waited and not self.started and not self._ended:
            try:
                await self._fail(500, "The service has failed.")
            except OSError:
                pass  # the client has gone as well, and what the application raised is more important

    async def _fail(self, status: int, message: str) -> None:
        failure: Dict[str, Any] = {"error": "failed", "status": status, "message": message}
        await self.tell(event("failed", failure), more=False)


def _is_last(message: Message) -> bool:
    kind = message["type"]
    if kind == "http.response.body":
        return not message.get("more_body", False)
    return bool(kind == "http.response.pathsend")


def _is_plain_event_stream(start: Message) -> bool:
    headers = {bytes(name).lower(): bytes(value) for name, value in start.get("headers", [])}
    is_stream = headers.get(b"content-type", b"").lower().startswith(b"text/event-stream")
    return is_stream and b"content-encoding" not in headers
