"""The live pages of bandits with context, units and a holdout."""

import random
from typing import Any

import httpx
from playwright.sync_api import expect

from dynabandit.client import Client
from tools.axe import serious
from tools.browser import PHONE, OpenPage
from tools.harness import Running
from tools.page_helpers import PICTURES, arm_row, bandit_url, fits_width, only_for_pictures, wait_for_charts
from tools.waiting import PATIENCE

ARMS = ["Coffee", "Tea", "Cocoa"]
FEATURES: dict[str, Any] = {
    "hour": "number",
    "country": {"kind": "category", "values": ["NO", "SE", "DK"]},
    "returning": "boolean",
    "taste": {"kind": "vector", "size": 2},
}


def serve_drinks(client: Client, name: str, visitors: int) -> None:
    """Coffee is liked in the morning, tea in the afternoon, and cocoa in Denmark."""
    dice = random.Random(3)
    for visitor in range(visitors):
        hour, country = dice.randrange(7, 22), dice.choice(["NO", "SE", "DK"])
        context = {"hour": hour, "country": country, "returning": dice.random() < 0.4, "taste": [dice.random(), 1.0]}
        made = client.decide(name, context=context, unit=f"user-{visitor}")
        best = "Cocoa" if country == "DK" else "Coffee" if hour < 13 else "Tea"
        client.reward(made.decision, float(dice.random() < (0.6 if made.arm == best else 0.15)))


def test_the_page_shows_features_units_and_contexts(site: Running, client: Client, open_page: OpenPage) -> None:
    holdout = {"share": 0.2, "control": "Tea"}
    client.create("drinks", ARMS, "lin-ucb", features=FEATURES, sticky_for=86_400, holdout=holdout, seed=1)
    serve_drinks(client, "drinks", 300)
    visit = open_page(bandit_url(site, "drinks"))
    page = wait_for_charts(visit, charts=5)
    section = page.locator("#features-section")
    expect(section).to_be_visible()
    groups = section.locator("tbody")
    expect(groups).to_have_count(3)
    expect(groups.nth(0)).to_contain_text("hour")
    danish = groups.nth(1).locator("tr").filter(has=page.get_by_role("rowheader", name="DK", exact=True))
    expect(danish.get_by_role("listitem").first).to_contain_text("Cocoa")
    expect(groups.nth(2).get_by_role("rowheader", name="yes", exact=True)).to_be_visible()
    expect(page.locator("#features-others")).to_have_text("Also used: taste (vector).")
    expect(page.locator("#tiles")).to_contain_text("300units keep their arm for 24 hours (300 decisions for units)")
    expect(page.get_by_role("heading", name="Observed mean rewards")).to_be_visible()
    expect(arm_row(page, "Tea")).to_contain_text("%")
    expect(page.locator("#events")).to_contain_text("for user-299")
    expect(page.locator("#events")).to_contain_text("country")
    assert serious(page) == []
    page.get_by_role("button", name="Change the policy").click()
    page.get_by_label("Policy", exact=True).select_option("lin-ucb")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("in the context of the latest decision")
    page.get_by_role("button", name="Cancel").click()
    overview = open_page(site.url)
    card = overview.page.locator("[data-name=drinks]")
    expect(card).to_contain_text("with context")
    phone = open_page(bandit_url(site, "drinks"), size=PHONE, scheme="dark")
    wait_for_charts(phone, charts=5)
    expect(phone.page.locator("#features-section")).to_be_visible()
    assert fits_width(phone.page)
    assert serious(phone.page) == []
    assert visit.errors == overview.errors == phone.errors == []


def test_a_bandit_with_features_units_and_a_holdout_is_created_in_the_page(
    site: Running, client: Client, open_page: OpenPage
) -> None:
    visit = open_page(site.url)
    page = visit.page
    page.get_by_role("button", name="New bandit").click()
    page.get_by_label("Name").fill("offers")
    page.get_by_label("Arms, one per line").fill("\n".join(ARMS))
    page.get_by_text("Context, units and holdout").click()
    page.get_by_label("Features of the context, as JSON").fill("hour")
    page.get_by_label("Time for which a unit keeps its arm, in seconds").fill("3600")
    page.get_by_label("Share of the holdout").fill("2")
    page.get_by_label("Arm of the holdout").fill("Tea")
    page.get_by_label("Policy", exact=True).select_option("lin-ucb")
    assert serious(page) == []
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("#create-features-problem")).to_have_text("features must be an object in JSON, got hour")
    page.get_by_label("Features of the context, as JSON").fill('{"hour": "number"}')
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("#create-holdout-problem")).to_contain_text("holdout.share must be a number above 0")
    page.get_by_label("Share of the holdout").fill("0.2")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="offers")).to_be_visible()
    state = client.state("offers")
    assert (state.policy, list(state.features or {}), state.sticky_for) == ("lin-ucb", ["hour"], 3600)
    assert state.holdout is not None
    assert (state.holdout.share, state.holdout.control) == (0.2, "Tea")


def test_an_arm_with_features_is_added_in_the_page(site: Running, client: Client, open_page: OpenPage) -> None:
    client.create("prices", ARMS, "lin-ucb", arm_features={arm: {"price": float(len(arm))} for arm in ARMS}, seed=1)
    page = wait_for_charts(open_page(bandit_url(site, "prices")))
    page.get_by_role("button", name="Add an arm").click()
    page.get_by_label("Name of the arm").fill("Water")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#add-features-problem")).to_contain_text("Water")
    page.get_by_label("Features of the arm, as JSON").fill('{"price": 1}')
    page.get_by_role("button", name="Add", exact=True).click()
    expect(arm_row(page, "Water")).to_be_visible()


@only_for_pictures
def test_pictures(site: Running, client: Client, open_page: OpenPage) -> None:
    client.create("Drinks", ARMS, features=FEATURES, sticky_for=86_400, seed=1)
    serve_drinks(client, "Drinks", 1500)
    page = wait_for_charts(open_page(bandit_url(site, "Drinks")))
    page.locator("#features-section").screenshot(path=PICTURES / "live-context.png")


def test_the_latest_events_show_rankings_and_activations(site: Running, client: Client, open_page: OpenPage) -> None:
    client.create("ranked", ARMS, "ucb", reward_window=600, default_reward=0, seed=1)
    made = client.decide("ranked", rank=3)
    calls = f"{site.url}/v1/bandits/ranked/personalizer/v1.0"
    asked = {"actions": [{"id": arm} for arm in ARMS], "eventId": "e", "deferActivation": True}
    assert httpx.post(f"{calls}/rank", json=asked, timeout=PATIENCE).status_code == 201
    assert httpx.post(f"{calls}/events/e/activate", timeout=PATIENCE).status_code == 204
    page = open_page(bandit_url(site, "ranked")).page
    assert made.ranking is not None
    expect(page.locator("#events")).to_contain_text(f"then {', '.join(one.arm for one in made.ranking[1:])}")
    expect(page.locator("#events tr").first).to_contain_text("activated")
