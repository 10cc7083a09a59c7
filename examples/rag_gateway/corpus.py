"""A small corpus, and a search in it that is good enough for an example."""

from __future__ import annotations

import math
import re
from typing import List, NamedTuple, Set


class Passage(NamedTuple):
    """A paragraph that an answer may rest on."""

    title: str
    text: str


PASSAGES = [
    Passage(
        "What it is for",
        "fairq limits how many long requests run at once over a whole cluster, with a strict first-come-first-served line in "
        "front. A request to a language model, a report export or a transcoding job holds expensive capacity for seconds to "
        "minutes; a limit per second does not protect that capacity.",
    ),
    Passage(
        "What a caller gets",
        "Ask for a permit: have it at once, or wait in line and see your position, or be told quickly why not. The reasons "
        "are few: the line is full, the wait was too long, the request was cancelled, or Redis cannot be reached.",
    ),
    Passage(
        "The limit",
        "The cost of all permits that are held never exceeds the limit, over all processes and in any language. When an "
        "operator lowers the limit nothing is taken away; no new permit is given until use is below it.",
    ),
    Passage(
        "Order and fairness",
        "Permits are given in the order of arrival at Redis, exactly. A newcomer never takes a free slot while somebody "
        "waits. With costs above one the head of the line waits until its cost fits, and nobody passes it.",
    ),
    Passage(
        "Crashes",
        "A process that is killed gives its permits and its places in line back within the lease, which is ten seconds by "
        "default. The lease is about the process and not about its requests, which may run for hours.",
    ),
    Passage(
        "When Redis loses its data",
        "After a restart without data or a FLUSHALL, every live process puts back what it holds and waits for, in the "
        "original order. Nobody is admitted for two thirds of a lease, so that holders come first.",
    ),
    Passage(
        "Outages",
        "While Redis is away, what is held stays held. Those who wait keep their place until their deadline; or fail at "
        "once; or are admitted locally up to a small number for each process. The limiter's outage setting decides.",
    ),
    Passage(
        "Fences",
        "Each permit carries a fence, a number that grows with every grant. Hand it to the resource that you guard, and let "
        "it refuse smaller numbers: then a process that slept through the loss of its lease can do no harm.",
    ),
    Passage(
        "Cost",
        "An acquire is one script call in Redis, a release is another, and a process that waits asks once a second. Nothing "
        "grows with the number of waiters: a thousand in line cost Redis as much as one.",
    ),
    Passage(
        "Streaming",
        "A streamed answer holds its permit until the last byte of its body has gone out, not until the first. The "
        "middleware for ASGI does that, and gives the permit back when the client disconnects in the middle.",
    ),
    Passage(
        "Closing the tab",
        "Who closes the tab while waiting leaves the line at once, and everybody behind moves up. Who closes it while the "
        "answer streams stops the model, and the next in line begins.",
    ),
    Passage(
        "Without Redis",
        "With the URL memory: the same limiter works inside one process: for trying out, for tests, and for services that "
        "run on a single machine. It is also the model that the Redis scripts are checked against.",
    ),
    Passage(
        "Languages",
        "The core is written in Rust. C and C++ link to it; Python, Java and Go use it through the same C interface. All of "
        "them may stand in the same line, since the order is given by Redis.",
    ),
]

_TOO_COMMON = set(
    "a an and are as at be by can do does for from happens how i if in is it me my of on or so that the this to what when "
    "who why with you".split()
)


def _words(text: str) -> Set[str]:
    """The words that say what a text is about, without their plural's endings."""
    words = re.findall(r"[a-z]+", text.lower())
    return {re.sub("e?s?$", "", word) for word in words if word not in _TOO_COMMON}


_INDEX = [(_words(passage.title), _words(passage.title + " " + passage.text), passage) for passage in PASSAGES]


def _weight(word: str) -> float:
    """Rare words say more."""
    return math.log(1 + len(_INDEX) / (1 + sum(word in words for _, words, _ in _INDEX)))


def retrieve(question: str, count: int = 2) -> List[Passage]:
    """The passages that have the most to do with the question; none, if none has."""
    asked = _words(question)
    scored = []
    for title, words, passage in _INDEX:
        found = [*(asked & words), *(asked & title)]  # what is in the title counts twice
        scored.append((sum(map(_weight, found)), passage))
    scored.sort(key=lambda entry: -entry[0])
    return [passage for score, passage in scored[:count] if score > 0]
