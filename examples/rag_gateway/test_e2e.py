"""The gateway as people use it: a real browser, real servers, a real Redis. `./run-tests.sh` brings what it needs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import fairq
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from corpus import retrieve

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PATIENCE = 30  # seconds until something is said not to happen
LIMIT, MAX_QUEUE = 2, 3

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
DRIVER = shutil.which("chromedriver")
FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-dev-shm-usage
    --disable-background-networking --disable-component-update --disable-sync --window-size=1100,760""".split()


def until(condition: Callable[[], Any], what: str, instead: Callable[[], Any] = lambda: "") -> None:
    """Looks again and again; nothing here waits for a time."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}; {instead()}"
        time.sleep(0.02)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


@contextmanager
def running(command: List[str], port: int, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server, from its first answer to its end."""
    process = subprocess.Popen(command, env={**os.environ, **environment}, cwd=HERE)
    try:
        until(lambda: process.poll() is not None or answers(port), f"{command[0]} listens")
        assert process.poll() is None, f"{command[0]} ended with {process.poll()}"
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


# --- What the tests run on


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    installed = [shutil.which("redis-server"), *map(str, sorted(ROOT.glob("target/servers/*/bin/*-server")))]
    binary = next(filter(None, installed), None)
    if binary is None:
        pytest.skip("no redis-server")
    port = free_port()
    options = f"--port {port} --bind 127.0.0.1 --appendonly no --loglevel warning".split()
    folder = str(tmp_path_factory.mktemp("redis"))
    with running([binary, *options, "--save", "", "--dir", folder], port):
        yield f"redis://127.0.0.1:{port}"


class Gateways(NamedTuple):
    """Two server processes that share the limit: one with a fast model, one whose answers never end in a test's time."""

    fast: str
    slow: str


@pytest.fixture(scope="session")
def gateways(redis_url: str) -> Iterator[Gateways]:
    with ExitStack() as stack:
        urls = []
        for speed in ("60", "0.2"):
            port = free_port()
            command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "warning"]
            command += ["--timeout-graceful-shutdown", "1"]
            settings = {"GATEWAY_LIMIT": str(LIMIT), "GATEWAY_MAX_QUEUE": str(MAX_QUEUE), "GATEWAY_MAX_WAIT": str(PATIENCE)}
            stack.enter_context(
                running(command, port, FAIRQ_URL=redis_url, GATEWAY_TOKENS_PER_SECOND=speed, **settings)
            )
            urls.append(f"http://127.0.0.1:{port}")
        yield Gateways(*urls)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium, or no chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER)) as driver:
        yield driver


class Limiter:
    """The gateways' limiter, as an operator and as somebody else who holds permits."""

    def __init__(self, limiter: fairq.Limiter) -> None:
        self.limiter = limiter
        self.permits: List[fairq.Permit] = []

    def take_all(self) -> None:
        self.permits = [self.limiter.acquire(5, label="test") for _ in range(LIMIT)]

    def give_back(self) -> None:
        while self.permits:
            self.permits.pop().release()

    def until_standing(self, running: int, waiting: int) -> None:
        until(lambda: self.standing() == (running, waiting), f"{running} run and {waiting} wait", self.standing)

    def standing(self) -> Tuple[int, int]:
        status = self.limiter.status()
        return status.used, status.waiting


@pytest.fixture
def limiter(redis_url: str, gateways: Gateways, browser: webdriver.Chrome) -> Iterator[Limiter]:
    """Nobody holds anything at a test's begin, nor at its end."""
    with fairq.Client(redis_url) as client:
        limiter = Limiter(client.limiter("rag:chat", limit=LIMIT, max_queue=MAX_QUEUE, max_wait=PATIENCE))
        limiter.limiter.acquire(PATIENCE).release()
        yield limiter
        limiter.give_back()
        close_tabs(browser)
        limiter.limiter.configure(reset=True)
        limiter.until_standing(0, 0)


def close_tabs(browser: webdriver.Chrome) -> None:
    """All but one, and that is emptied."""
    for tab in browser.window_handles[1:]:
        browser.switch_to.window(tab)
        browser.close()
    browser.switch_to.window(browser.window_handles[0])
    browser.get("about:blank")


# --- A tab


class Tab:
    """A visitor."""

    def __init__(self, browser: webdriver.Chrome, url: str) -> None:
        browser.switch_to.new_window("tab")
        browser.get(url)
        self.browser, self.handle = browser, browser.current_window_handle
        self.script(WATCH)

    def script(self, text: str) -> Any:
        self.browser.switch_to.window(self.handle)
        return self.browser.execute_script(text)

    def click(self, name: str) -> None:
        self.browser.switch_to.window(self.handle)
        self.browser.find_element(By.ID, name).click()

    def shown(self, name: str) -> str:
        """What a person sees there; empty, if it is not shown."""
        self.browser.switch_to.window(self.handle)
        return self.browser.find_element(By.ID, name).text

    @property
    def state(self) -> str:
        return str(self.script("return document.getElementById('exchange').dataset.state"))

    def until(self, state: str) -> None:
        until(lambda: self.state == state, state, lambda: self.state)

    def spoken(self) -> str:
        """What a screen reader says."""
        return str(self.script("return document.getElementById('status').textContent"))

    def close(self) -> None:
        self.browser.switch_to.window(self.handle)
        self.browser.close()
        self.browser.switch_to.window(self.browser.window_handles[0])


# Notes the states that the page goes through, and how often the answer grows.
WATCH = """
    window.states = [];
    window.growth = 0;
    const exchange = document.getElementById("exchange");
    new MutationObserver(() => window.states.push(exchange.dataset.state)).observe(exchange, {attributeFilter: ["data-state"]});
    new MutationObserver(() => window.growth++).observe(document.getElementById("text"), {childList: true});
"""
QUESTION = "What happens when a process crashes?"
ANSWER = " ".join(passage.text for passage in retrieve(QUESTION))


@pytest.fixture
def open_tab(browser: webdriver.Chrome) -> Callable[[str], Tab]:
    return lambda url: Tab(browser, url)


# --- The tests


def test_the_answer_streams_to_its_end(limiter: Limiter, gateways: Gateways, open_tab: Any) -> None:
    tab = open_tab(gateways.fast)
    tab.click("ask")
    tab.until("done")
    assert tab.shown("text") == ANSWER
    assert tab.shown("asked") == QUESTION
    assert tab.shown("source-list").splitlines() == [passage.title for passage in retrieve(QUESTION)]
    assert tab.script("return states") == ["asking", "streaming", "done"]
    assert tab.script("return growth") > 10, "token by token"
    assert tab.spoken() == "The answer is complete."
    limiter.until_standing(0, 0)


def test_who_has_to_wait_sees_the_place_then_the_answer(limiter: Limiter, gateways: Gateways, open_tab: Any) -> None:
    limiter.take_all()
    first, second = open_tab(gateways.fast), open_tab(gateways.fast)
    first.click("ask")
    first.until("waiting")
    second.click("ask")
    second.until("waiting")
    assert first.shown("place") == "1" and "number 1" in first.shown("waiting")
    assert second.shown("place") == "2" and "number 2" in second.spoken()
    until(lambda: first.shown("in-line") == "2" and first.shown("running") == str(LIMIT), "the panel shows it")
    assert len(first.script("return document.querySelectorAll('#slots .taken')")) == LIMIT
    until(lambda: second.script("return document.querySelectorAll('#line .you').length") == 1, "and where one stands")
    limiter.give_back()
    for tab in (first, second):
        tab.until("done")
        assert tab.shown("text") == ANSWER


def test_who_finds_the_line_full_is_told_politely(limiter: Limiter, gateways: Gateways, open_tab: Any) -> None:
    limiter.take_all()
    limiter.limiter.configure(max_queue=0)
    tab = open_tab(gateways.fast)
    tab.click("ask")
    tab.until("rejected")
    assert "We are busy." in tab.shown("notice") and "try again in about" in tab.shown("notice")
    assert tab.shown("notice").split("\n")[0] in tab.spoken()
    limiter.give_back()
    tab.click("again")
    tab.until("done")
    assert tab.shown("text") == ANSWER


def test_who_waits_too_long_is_told(limiter: Limiter, gateways: Gateways, open_tab: Any) -> None:
    limiter.take_all()
    tab = open_tab(gateways.fast)
    limiter.limiter.configure(max_wait=0.2)
    tab.click("ask")  # with its answer the server hears of the change
    tab.until("waiting")
    tab.click("stop")
    tab.until("stopped")
    tab.click("ask")
    tab.until("rejected")
    assert "That took too long." in tab.shown("notice") and "try again in about" in tab.shown("notice")


def test_closing_the_tab_while_waiting_frees_the_place(limiter: Limiter, gateways: Gateways, open_tab: Any) -> None:
    limiter.take_all()
    gone, stays = open_tab(gateways.fast), open_tab(gateways.fast)
    for tab, place in ((gone, 1), (stays, 2)):
        tab.click("ask")
        limiter.until_standing(LIMIT, place)
    gone.close()
    limiter.until_standing(LIMIT, 1)
    until(lambda: stays.shown("place") == "1", "the one behind moves up")


def test_closing_the_tab_in_the_answer_frees_the_slot(limiter: Limiter, gateways: Gateways, open_tab: Any) -> None:
    tab = open_tab(gateways.slow)
    tab.click("ask")
    tab.until("streaming")
    assert status(gateways.fast)["running"] == 1, "the other process sees it"
    tab.close()
    until(lambda: status(gateways.fast)["running"] == 0, "the slot is free")


def test_two_processes_share_the_limit(limiter: Limiter, gateways: Gateways, open_tab: Any) -> None:
    first, second, third = open_tab(gateways.slow), open_tab(gateways.slow), open_tab(gateways.fast)
    for tab in (first, second):
        tab.click("ask")
        tab.until("streaming")
    third.click("ask")
    third.until("waiting")
    assert third.shown("place") == "1" and limiter.standing() == (LIMIT, 1)
    assert status(gateways.fast)["processes"] >= 2
    first.click("stop")
    first.until("stopped")
    assert "Stopped." in first.shown("answer")
    third.until("done")
    assert third.shown("text") == ANSWER
    assert second.state == "streaming"


def test_stop_leaves_the_line(limiter: Limiter, gateways: Gateways, open_tab: Any) -> None:
    limiter.take_all()
    tab = open_tab(gateways.fast)
    tab.click("ask")
    tab.until("waiting")
    tab.click("stop")
    tab.until("stopped")
    assert tab.spoken() == "You left the line."
    limiter.until_standing(LIMIT, 0)


def test_more_askers_fill_the_line(limiter: Limiter, gateways: Gateways, open_tab: Any) -> None:
    limiter.take_all()
    tab = open_tab(gateways.fast)
    tab.click("more")
    limiter.until_standing(LIMIT, MAX_QUEUE)
    until(lambda: tab.shown("in-line") == str(MAX_QUEUE), "the panel shows it")


def test_load_finds_the_limit_and_the_order_kept(limiter: Limiter, gateways: Gateways) -> None:
    command = [sys.executable, "load.py", "--url", gateways.fast, "--clients", "20", "--spread", "1"]
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout
    assert "answered" in done.stdout and f"limit {LIMIT}" in done.stdout and "kept" in done.stdout


def test_run_sh_starts_it_and_ends_it(open_tab: Any, browser: webdriver.Chrome) -> None:
    """In memory, with one process."""
    port = free_port()
    command = ["./run.sh", "--port", str(port), "--tokens-per-second", "200", "--limit", "5"]
    with running(command, port, FAIRQ_URL="") as process:
        tab = open_tab(f"http://127.0.0.1:{port}")
        tab.click("ask")
        tab.until("done")
        assert tab.shown("text") == ANSWER and tab.shown("limit") == "5"
        close_tabs(browser)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) in (0, 130, -signal.SIGINT)
        assert not answers(port)


def status(url: str) -> Dict[str, Any]:
    with urllib.request.urlopen(f"{url}/status", timeout=PATIENCE) as response:
        found: Dict[str, Any] = json.load(response)
        return found
