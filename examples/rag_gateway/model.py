"""Stands in for a language model: as slow as a real one, and used like the client of one."""

from __future__ import annotations

import asyncio
import os
import re
from typing import AsyncIterator, Sequence

from corpus import Passage

TOKENS_PER_SECOND = float(os.environ.get("GATEWAY_TOKENS_PER_SECOND", "20"))


async def stream(question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
    """The answer, token by token. Closing the iterator stops the model."""
    for token in re.findall(r"\S+\s*", _answer(passages)):
        await asyncio.sleep(1 / TOKENS_PER_SECOND)
        yield token


def _answer(passages: Sequence[Passage]) -> str:
    if not passages:
        return "The documents say nothing about that. Try asking about the limit, the order, crashes, Redis or streaming."
    return " ".join(passage.text for passage in passages)
