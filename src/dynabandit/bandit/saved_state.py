"""All that a bandit remembers, as plain values: what is saved, restored, copied and hashed."""

import zlib
from typing import Any, NamedTuple

import numpy as np

from dynabandit.bandit import serialization
from dynabandit.bandit.arm_tree import ArmTree, restored_cells
from dynabandit.bandit.arms import ArmColumns
from dynabandit.bandit.contexts import Contexts
from dynabandit.bandit.live_policies import accepted_rewards, check_context, check_state_size, live_policy
from dynabandit.bandit.traffic_limits import TrafficLimits
from dynabandit.core.context import Context
from dynabandit.core.json_values import plain
from dynabandit.core.records import to_row
from dynabandit.core.streams import LARGEST_LIVE_STEP, LARGEST_SEED
from dynabandit.plugins import UnknownPolicyError
from dynabandit.policies import Policy, PolicyState
from dynabandit.policies.base import new_state
from dynabandit.validation import ParameterError, integer

BYTES_PER_ARM, BYTES_OF_OBJECTS = 300, 10_000  # besides the arrays; names and the tree of many arms


class SavedState(NamedTuple):
    """What a bandit remembers; all else follows from it.

    `law` is the reward law whose rewards are accepted, None for those that the policy is made for. The arrays are those
    of `PolicyState`, with a column for each arm.
    """

    policy: Policy
    law: str | None
    seed: int
    step: int
    arms: ArmColumns
    limits: TrafficLimits | None
    contexts: Contexts | None
    memory: np.ndarray
    shared: np.ndarray
    models: np.ndarray | None
    tree: ArmTree | None

    @property
    def context(self) -> Context | None:
        """The shape of the features that the policy sees; None without features."""
        return None if self.contexts is None else self.contexts.shape

    @property
    def cells(self) -> np.ndarray | None:
        """The numbers of the tree that are saved, if there are any."""
        return None if self.tree is None else self.tree.cells

    @property
    def nbytes(self) -> int:
        """Roughly how many bytes a copy takes, without the contexts of decisions."""
        arrays = (*self.arms.arrays, self.memory, self.shared, self.models, self.cells)
        return sum(one.nbytes for one in arrays if one is not None) + BYTES_PER_ARM * len(self.arms) + BYTES_OF_OBJECTS

    def copy(self) -> "SavedState":
        """Return an independent copy."""
        return self._replace(
            arms=self.arms.copy(),
            limits=copy_of(self.limits),
            contexts=copy_of(self.contexts),
            memory=self.memory.copy(),
            shared=self.shared.copy(),
            models=copy_of(self.models),
            tree=copy_of(self.tree),
        )

    def hash(self) -> str:
        """Return a hash of all that is saved: bandits with equal hashes make the same decisions from now on."""
        limits = None if self.limits is None else self.limits.to_json()
        parameters, names = plain(self.policy.parameters), self.arms.names
        rest = [self.policy.name, parameters, self.seed, self.step, names, limits]
        if self.contexts is not None:
            rest.append(self.contexts.to_json())
        *arrays, pending = self.arms.arrays
        arrays += [self.memory, self.shared, *([pending] if pending.any() else [])]
        arrays += [part for part in (self.models, self.cells) if part is not None]
        return serialization.digest(rest, arrays)


def started(policy: Policy, arms: ArmColumns, context: Context | None) -> PolicyState:
    """Return the state of a policy without any reward, or raise an error if it cannot decide for this bandit."""
    check_context(policy, context)
    check_state_size(policy, len(arms), context)
    return new_state(policy, len(arms), policy.params(arms.count_open()), context)


def with_arm(saved: SavedState) -> PolicyState:
    """Return the state of the policy with the arm that was added last to `saved.arms`, without rewards of it."""
    column, models = len(saved.arms) - 1, saved.models
    memory = np.hstack([saved.memory, np.zeros((len(saved.memory), 1))])
    if models is not None and saved.context is not None and len(models) > 1:  # each arm has a model
        model = saved.policy.initial_models(1, saved.context)[0]  # the rows of all arms are equal
        models = np.insert(models, column, model, axis=0)
    state = PolicyState(memory, saved.shared, saved.arms.last_played, saved.arms.pending, models)
    saved.policy.functions.start(state, column, saved.policy.params(saved.arms.count_open()))
    return state


def adopted(saved: SavedState, other: SavedState) -> SavedState | None:
    """Return a copy of `saved` with the policy of another bandit and what it has learned.

    Returns None if the other bandit learned about other arms or features.
    """
    own, others = (to_row(other.policy.params(one.arms.count_open())) for one in (saved, other))
    if len(saved.arms) != len(other.arms) or not np.array_equal(own, others):
        return None
    if other.models is not None and saved.context != other.context:
        return None  # the kinds of the features were decided meanwhile
    learned = other.copy()
    return saved.copy()._replace(
        policy=learned.policy,
        law=learned.law,
        memory=learned.memory,
        shared=learned.shared,
        models=learned.models,
        tree=None,
    )


def to_json(saved: SavedState) -> str:
    """Return all that is saved as JSON."""
    content = {
        "policy": saved.policy.name,
        "parameters": plain(saved.policy.parameters),
        "seed": saved.seed,
        "step": saved.step,
        "arms": saved.arms.to_json(),
        "shares": None if saved.limits is None else saved.limits.to_json(),
        "memory": serialization.array_to_json(saved.memory),
        "shared": serialization.array_to_json(saved.shared),
    }
    if saved.law is not None:
        content["rewards"] = saved.law
    if saved.contexts is not None:
        content["features"] = saved.contexts.to_json()
    if saved.models is not None:
        content["models"] = serialization.array_to_json(saved.models)
    if (cells := saved.cells) is not None:
        content["cells"] = serialization.array_to_json(cells)
    return serialization.write(content)


def from_json(text: str, policy: Policy | None) -> SavedState:
    """Return what `to_json` wrote; `policy` is needed if it is not in the registry."""
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(f"policy must be a policy object, and only where it is not in the registry, got {policy!r}")
    content = serialization.read(text)
    try:
        return _restored(content, live_policy(serialization.policy_of(content, policy)))
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        problem = f"text must be what Bandit.to_json wrote, but cannot be read: {error}"
        if isinstance(error, UnknownPolicyError):
            raise UnknownPolicyError(problem, error.policy) from None
        if isinstance(error, ParameterError):
            problem += ". Load it with the release that saved it, and save it with another policy (Bandit.swapped)"
            raise ParameterError(problem) from None
        raise ValueError(problem) from None


def _restored(content: dict[str, Any], policy: Policy) -> SavedState:
    """Return a saved bandit with this policy, or raise an error if a part is not valid."""
    step = integer("step", content["step"], 0, LARGEST_LIVE_STEP)
    arms = ArmColumns.from_json(content["arms"], step)
    limits, features, law, cells = (content.get(name) for name in ("shares", "features", "rewards", "cells"))
    accepted_rewards(policy, law)
    contexts = None if features is None else Contexts.from_json(features, len(arms), step)
    empty = started(policy, arms, None if contexts is None else contexts.shape)

    arrays = {name: serialization.array_from_json(content[name]) for name in ("memory", "shared")}
    memory = serialization.check_shape(policy.restored(arrays["memory"], arms.last_played), empty.memory.shape)
    models = empty.models
    if models is not None:
        models = serialization.check_shape(serialization.array_from_json(content["models"]), models.shape)
    return SavedState(
        policy=policy,
        law=law,
        seed=integer("seed", content["seed"], 0, LARGEST_SEED),
        step=step,
        arms=arms,
        limits=None if limits is None else TrafficLimits.from_json(limits),
        contexts=contexts,
        memory=memory,
        shared=serialization.check_shape(arrays["shared"], empty.shared.shape),
        models=models,
        tree=None if cells is None else ArmTree(policy.functions, restored_cells(cells)),
    )


def copy_of(part: Any) -> Any:
    """Return a copy of a part that a bandit may not have."""
    return None if part is None else part.copy()
