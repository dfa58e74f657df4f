"""Pages of bandits with names that HTML and addresses would change."""

import pytest
from playwright.sync_api import expect

from dynabandit.service.stores import open_store
from service.harness import running, talking

ARMS = ["red", "green", "blue"]
expect.set_options(timeout=120_000)  # of waiting for what must come; nothing sleeps that long


@pytest.mark.parametrize("name", ["a\rb", "c\nd", "ends\n", "e\r\nf/g&amp;%0A"])
def test_a_page_shows_and_changes_the_bandit_of_its_very_name(sqlite_url, open_page, name):
    with running(open_store(sqlite_url)) as site, talking(site.url, tries=6) as (client, _):
        client.create(name, arms=ARMS, seed=1)
        for other in (name.replace("\r", "\n"), name.rstrip("\n"), name.replace("\r\n", "\n")):
            if other != name:
                client.create(other, arms=["other", "arms"], seed=1)
        visit = open_page(site.url)
        visit.page.evaluate("name => { location.href = '/bandits/' + encodeURIComponent(name) }", name)
        visit.page.get_by_role("button", name="Pause green").click()
        expect(visit.page.get_by_role("button", name="Resume green")).to_be_visible()
        assert [arm.paused for arm in client.state(name).arms] == [False, True, False]
        assert visit.errors == []
