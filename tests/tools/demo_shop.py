"""A shop with bandits for banners, mail subjects and buttons, whose click rates change in the same way each time."""

import random

from dynabandit.client import Client

BANNERS = {"Autumn sale": 0.12, "Free shipping": 0.30, "New arrivals": 0.18, "Gift cards": 0.08, "Members' club": 0.15}
SUBJECTS = {"Short": 0.22, "Question": 0.31, "With a name": 0.27}
BUTTONS = {"Buy now": 0.36, "To the basket": 0.27, "Continue": 0.18}
BATCH = 50  # decisions per request
MISSING_REWARDS = 0.015  # share


def play(client: Client, name: str, rates: dict[str, float], steps: int, dice: random.Random) -> None:
    """Make decisions, with rewards at these rates."""
    for _ in range(steps // BATCH):
        decisions = client.decide_many(name, BATCH)
        client.reward_many(
            (one.decision, float(dice.random() < rates[one.arm]))
            for one in decisions
            if dice.random() > MISSING_REWARDS
        )


def fill(client: Client, steps: int) -> None:
    """Create the bandits: half-way, "Free shipping" becomes worse and "Autumn sale" better.

    There are interventions too: "Gift cards" gets limits, and later "Members' club" is paused.
    """
    dice = random.Random(5)
    client.create("Home banner", arms=list(BANNERS), seed=3, reward_window=86_400)
    autumn = {**BANNERS, "Autumn sale": 0.34, "Free shipping": 0.12}
    play(client, "Home banner", BANNERS, steps // 4, dice)
    client.change_arm("Home banner", "Gift cards", min_share=0.05, max_share=0.1)
    play(client, "Home banner", BANNERS, steps // 4, dice)
    play(client, "Home banner", autumn, steps // 4, dice)
    client.change_arm("Home banner", "Members' club", paused=True)
    play(client, "Home banner", autumn, steps // 4, dice)
    client.create("Mail subject", arms=list(SUBJECTS), policy="ucb", seed=3)
    play(client, "Mail subject", SUBJECTS, steps // 4, dice)
    client.create("Checkout button", arms=list(BUTTONS), seed=3)
    play(client, "Checkout button", BUTTONS, steps // 4, dice)
    play(client, "Checkout button", {**BUTTONS, "Buy now": 0.11}, steps // 15, dice)
    client.create("Search order", arms=["by date", "by relevance"], seed=3)
