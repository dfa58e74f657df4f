"""The metrics for Prometheus."""

import re
from pathlib import Path

import pytest

from dynabandit.service.metrics import MAX_ARMS_SHOWN
from tools.harness import ARMS, Running, talking


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.promise(99, 119)
def test_metrics_count_decisions_and_rewards_per_arm(server: Running) -> None:
    with talking(server.url) as (client, http):
        client.create('b"\n', ARMS, seed=1)
        client.create("many", [str(number) for number in range(MAX_ARMS_SHOWN + 1)])
        for decision in client.decide_many('b"\n', 3):
            client.reward(decision.decision, 0.5)
        client.decide_many("many", 5)
        page = http.get("/metrics").text
        for arm in ARMS:
            assert f'dynabandit_decisions_total{{arm="{arm}",bandit="b\\"\\n"}} 1.0' in page
            assert f'dynabandit_reward_sum_total{{arm="{arm}",bandit="b\\"\\n"}} 0.5' in page
        assert 'bandit="many"' not in page
        assert "_created" not in page
        client.delete('b"\n')
        assert "dynabandit_decisions_total{" not in http.get("/metrics").text


@pytest.mark.promise(119)
def test_every_series_is_in_the_table_of_the_docs(server: Running) -> None:
    table = (DOCS / "service.md").read_text(encoding="utf-8").partition("**Metrics**")[2].partition("**Logs**")[0]
    with talking(server.url) as (client, http):
        client.create("b", ARMS)
        client.reward(client.decide("b").decision, 1)
        page = http.get("/metrics").text
    series = set(re.findall(r"^\w+", page, re.MULTILINE))
    assert len(series) > 10
    named = {re.sub("_seconds_(bucket|count|sum)$", "_seconds", one) for one in series}
    assert [one for one in sorted(named) if f"`{one}`" not in table] == []


def test_the_sum_of_rewards_may_fall(server: Running) -> None:
    with talking(server.url) as (client, http):
        client.create("b", ARMS, "normal-ts", rewards="normal")
        decisions = client.decide_many("b", 2)
        assert [one.status for one in client.reward_many((one.decision, -2) for one in decisions)] == [200, 200]
        sums = re.findall(r"^dynabandit_reward_sum_total{.*} (.*)$", http.get("/metrics").text, re.MULTILINE)
    assert sum(map(float, sums)) == -4
