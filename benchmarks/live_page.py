"""Measure how long the live page of a bandit with a long log takes to load: `python benchmarks/live_page.py`.

Creates a SQLite store with a million events, serves it, and opens the page in a browser: first without a saved history,
then after a restart. "painted" is the browser's first contentful paint; at "complete", the charts show the whole log.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from playwright.sync_api import Browser, expect, sync_playwright

from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.events import CREATE, REWARD
from dynabandit.service.stores import Snapshot, open_store
from tools.browser import FLAGS, find_browser
from tools.harness import ServerProcess

NUMBER, NAME = 12_345, "long log"
RATES = [0.1, 0.15, 0.3, 0.12, 0.2]
BATCH = 20_000  # rows


def make(url: str, events: int) -> None:
    """Write a log as the service would: decisions and rewards, with means that change ten times."""
    store = open_store(url)
    store.prepare()
    state, dice, rates = LoggedState(NUMBER, store.rewards_before), random.Random(1), list(RATES)
    body = {"name": NAME, "arms": list("abcde"), "policy": "aff-ots", "parameters": {}, "seed": 1,
            "reward_window": None, "default_reward": None, "drawn": False}  # fmt: skip
    rows, created = [state.append(CREATE, 0.0, time.time(), body=json.dumps(body))], [(NUMBER, NAME)]
    for step in range(events // 2):
        if step % (events // 20) == 0:
            dice.shuffle(rates)
        now = step * 0.1
        decided = state.decide(now, time.time() - events * 0.05 + now)
        value = float(dice.random() < rates[decided.arm or 0])
        rows += [decided, state.append(REWARD, now, decided.wall, settles=decided.step, arm=decided.arm, value=value)]
        if len(rows) >= BATCH:
            store.commit(rows, created)
            rows, created = [], []
    store.commit(rows, created)
    store.save_snapshot(NUMBER, Snapshot(state.sequence, state.state_hash(), state.to_json()))
    store.close()


def load(browser: Browser, url: str) -> None:
    """Serve the store, open the page and print the times."""
    server = ServerProcess(url)
    context = browser.new_context()
    page = context.new_page()
    started = time.perf_counter()
    page.goto(f"{server.url}/bandits/{NAME.replace(' ', '%20')}", wait_until="commit")
    expect(page.locator(".canvas[data-drawn]")).to_have_count(4)
    drawn = time.perf_counter() - started
    expect(page.locator("#reading")).to_be_hidden()
    complete = time.perf_counter() - started
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    print(f"painted {painted:.2f} s   charts {drawn:.2f} s   complete {complete:.2f} s")
    context.close()
    server.stop()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    events = parser.parse_args().events
    expect.set_options(timeout=300_000)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        url = f"sqlite:///{folder}/store.db"
        make(url, events)
        print(f"{events:,} events, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        for words in ("no saved history", "after a restart", "after a restart"):
            print(f"{words:<18}", end=" ")
            load(browser, url)
        browser.close()


if __name__ == "__main__":
    main()
