"""A shop to look at: banners, subjects and buttons whose appeal changes, always in the same way."""

import random

from dynabandit.client import Client

BANNERS = {"Autumn sale": 0.12, "Free shipping": 0.30, "New arrivals": 0.18, "Gift cards": 0.08, "Members' club": 0.15}
SUBJECTS = {"Short": 0.22, "Question": 0.31, "With a name": 0.27}
BUTTONS = {"Buy now": 0.36, "To the basket": 0.27, "Continue": 0.18}
CALL = 50  # decisions of a call
LOST = 0.015  # of the rewards


def play(client: Client, name: str, rates: dict[str, float], steps: int, dice: random.Random) -> None:
    """Let people come by who like the arms as much as the rates say."""
    for _ in range(steps // CALL):
        seen = client.decide_many(name, CALL)
        client.reward_many(
            (one.decision, float(dice.random() < rates[one.arm])) for one in seen if dice.random() > LOST
        )


def fill(client: Client, steps: int = 12_000) -> None:
    """Open the shop: in the middle of the time free shipping loses its charm and the sale begins.

    People do something too: they keep the gift cards in sight, and later take the club down.
    """
    dice = random.Random(5)
    client.create("Home banner", arms=BANNERS, seed=3, reward_window=86_400)
    autumn = {**BANNERS, "Autumn sale": 0.34, "Free shipping": 0.12}
    play(client, "Home banner", BANNERS, steps // 4, dice)
    client.change_arm("Home banner", "Gift cards", min_share=0.05, max_share=0.1)
    play(client, "Home banner", BANNERS, steps // 4, dice)
    play(client, "Home banner", autumn, steps // 4, dice)
    client.change_arm("Home banner", "Members' club", paused=True)
    play(client, "Home banner", autumn, steps // 4, dice)
    client.create("Mail subject", arms=SUBJECTS, policy="ots", seed=3)
    play(client, "Mail subject", SUBJECTS, steps // 4, dice)
    client.create("Checkout button", arms=BUTTONS, policy="aff-ts", seed=3)
    play(client, "Checkout button", BUTTONS, steps // 4, dice)
    play(client, "Checkout button", {**BUTTONS, "Buy now": 0.11}, steps // 15, dice)
    client.create("Search order", arms=["by date", "by relevance"], seed=3)
