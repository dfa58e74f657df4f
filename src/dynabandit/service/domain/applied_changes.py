"""What the events of changes do to the policy of a bandit and to its shadow policy."""

import itertools
import json
from typing import Any

from dynabandit.bandit import Bandit
from dynabandit.features import FeatureEncoder
from dynabandit.policies import is_contextual
from dynabandit.service.domain.events import ARM, CREATE, POLICY, SHADOW, EventRow
from dynabandit.service.domain.learning import EventLog, Learner
from dynabandit.service.domain.shadow import Shadow, restarted


def apply_change(
    bandit: Bandit | None, shadow: Shadow | None, event: EventRow, body: dict[str, Any], learner: Learner, log: EventLog
) -> tuple[Bandit, Shadow | None]:
    """Return the library's bandit and the shadow after a change, changed in place where that is possible.

    `body` is that of the event. New events use this function, except for those that create a bandit and those of a
    policy or shadow that has learned the rewards of the log before. Replays, and the history behind the pages, use it
    for all.
    """
    if event.kind == CREATE:
        return new_bandit(body), None
    assert bandit is not None
    if event.kind == ARM:
        apply_arm_change(bandit, body)
        if shadow is not None:
            apply_arm_change(shadow.bandit, body)
    elif event.kind == POLICY and "promoted" in body:
        return promote(bandit, shadow, body["kept"])
    elif event.kind == POLICY and "continues" not in body:
        return _with_learned_policy(bandit, event, body, learner, log), restarted(shadow)
    elif event.kind == SHADOW and "ended" in body:
        return bandit, None
    elif event.kind == SHADOW:
        other = _with_learned_policy(bandit, event, body, learner, log).reseeded(body["seed"])
        return bandit, Shadow(other)
    return bandit, shadow


def _with_learned_policy(
    bandit: Bandit, event: EventRow, body: dict[str, Any], learner: Learner, log: EventLog
) -> Bandit:
    """Return a bandit with another policy, which has learned the rewards of the log before an event."""
    after, learned_to = body.get("log_start", (0, 0))  # of a compacted log
    contextual = is_contextual(body["policy"])
    pages = learner.at_start(learned_to).learned_pages(log, event.bandit, after, event.sequence, contextual)
    encoder = FeatureEncoder.from_json(body["encoder"]) if "encoder" in body else None
    return bandit.swapped(body["policy"], itertools.chain.from_iterable(pages), encoder, **body["parameters"])


def learns(body: str | None) -> bool:
    """Whether an event of the kinds policy and shadow, given its body, lets a policy learn the rewards before it."""
    return not {"continues", "promoted", "ended"} & json.loads(body or "{}").keys()


def promote(bandit: Bandit, shadow: Shadow | None, keep: bool) -> tuple[Bandit, Shadow | None]:
    """Return the shadow's bandit and, if it is to be kept, the bandit so far as the new shadow."""
    if shadow is None:
        raise ValueError("there is no shadow policy to promote")
    return shadow.bandit, Shadow(bandit) if keep else None


def new_bandit(body: dict[str, Any]) -> Bandit:
    """Return the bandit that the body of a create event describes.

    It keeps no contexts: those of decisions that are learned later are in the log.
    """
    bandit = Bandit(
        body["policy"],
        body["arms"],
        seed=body["seed"],
        rewards=body.get("rewards"),
        features=body.get("features"),
        arm_features=body.get("arm_features"),
        **body["parameters"],
    )
    bandit.keep_no_contexts()
    return bandit


def apply_arm_change(bandit: Bandit, body: dict[str, Any]) -> None:
    """Change an arm as the body of an event says."""
    name = body["arm"]
    if body.get("add"):
        bandit.add_arm(name, body.get("features"))
    if "min_share" in body or "max_share" in body:
        min_share, max_share = bandit.shares(name)
        bandit.limit_arm(name, body.get("min_share", min_share), body.get("max_share", max_share))
    if "paused" in body:
        (bandit.pause_arm if body["paused"] else bandit.resume_arm)(name)
    if body.get("retired"):
        bandit.remove_arm(name)
