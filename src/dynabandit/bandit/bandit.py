"""Bandit: named arms, one decision at a time."""

import copy
import itertools
import math
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dynabandit.bandit import saved_state
from dynabandit.bandit.arm_tree import ArmTree
from dynabandit.bandit.arms import Arm, ArmColumns, Arms
from dynabandit.bandit.compiled import compiled_choose_and_learn, signed_seed
from dynabandit.bandit.contexts import make_contexts
from dynabandit.bandit.live_policies import accepted_rewards, check_state_size, law_after_change, live_policy
from dynabandit.bandit.ranking import Ranking
from dynabandit.bandit.reward_learning import RewardLearning
from dynabandit.bandit.saved_state import SavedState, copy_of
from dynabandit.bandit.traffic_limits import TrafficLimits
from dynabandit.choosing.choice_probabilities import choice_of, write_laws
from dynabandit.choosing.draw_tree import uses_draw_tree
from dynabandit.core.context import Context
from dynabandit.core.interpreted_first import interpreted_first
from dynabandit.core.streams import LARGEST_SEED
from dynabandit.environments import RewardLaw, reward_law
from dynabandit.features import ArmFeatures, FeatureEncoder
from dynabandit.policies import AUTO, Policy, policy as make_policy, resolved
from dynabandit.policies.belief import Belief
from dynabandit.validation import BOUNDED, RewardDomain, integer

MANY_REWARDS = 4096  # learned at a time


class Bandit(Ranking, RewardLearning):
    """A policy that makes live decisions: ask it for an arm, and report the reward.

    It uses the functions and random streams of a simulation: with the same rewards and delays, it makes the same
    choices. Each `choose` is a step, whether or not its reward arrives; a reward counts when it arrives, and until then
    the decision is pending (docs/delayed-rewards.md). Idle times are counted in steps, the window of SW-UCB and the
    decay of D-UCB in rewards. Not safe for concurrent threads.

    Methods that take a column are for the decision service: the column of an arm is its place in `names`.

    Parameters
    ----------
    policy
        A policy or its name; by default the recommended policy.
    arms
        The names of the arms, at least two different strings.
    seed
        The seed of all randomness; by default an unpredictable one.
    rewards
        The reward law whose rewards are accepted; by default what the policy is made for, mostly numbers in [0, 1].
    features
        The features of a context (docs/context.md): their names, or a mapping from names to kinds.
    arm_features
        The features of each arm, a mapping from arms to mappings, for a model that all arms share.
    parameters
        The parameters of the policy, if it is given by name.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit(arms=["red", "green", "blue"], seed=7)
    >>> for _ in range(100):
    ...     arm = bandit.choose()
    ...     bandit.reward(arm, 1 if arm == "blue" else 0)
    >>> max(bandit.arms, key=lambda name: bandit.arms[name].plays)
    'blue'

    A restored bandit continues with the same choices:

    >>> again = db.Bandit.from_json(bandit.to_json())
    >>> [again.choose() for _ in range(5)] == [bandit.choose() for _ in range(5)]
    True

    With features, a decision depends on its context:

    >>> bandit = db.Bandit("lin-ucb", arms=["red", "green"], features=["hour", "returning"], seed=7)
    >>> for hour in range(200):
    ...     arm = bandit.choose({"hour": hour % 24, "returning": hour % 3 == 0})
    ...     bandit.reward(arm, (arm == "red") == (hour % 3 == 0))
    >>> bandit.choose({"hour": 18, "returning": True}), bandit.choose({"hour": 18, "returning": False})
    ('red', 'green')
    """

    def __init__(
        self,
        policy: Policy | str = AUTO,
        arms: Sequence[str] = (),
        seed: int | None = None,
        rewards: RewardLaw | str | None = None,
        features: FeatureEncoder | Mapping[str, Any] | Iterable[str] | None = None,
        arm_features: ArmFeatures | Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        domain = BOUNDED if rewards is None else reward_law(rewards).domain
        contextual = features is not None or arm_features is not None
        self._policy = live_policy(make_policy(resolved(policy, domain, contextual=contextual), **parameters))
        self._law = None if rewards is None else accepted_rewards(self._policy, rewards).name
        self._seed = integer("seed", secrets.randbits(64) if seed is None else seed, 0, LARGEST_SEED)
        self._step = 0
        self._arms = ArmColumns(arms)
        self._limits: TrafficLimits | None = None  # None if no arm has a limit
        self._contexts = make_contexts(features, arm_features, self._arms.names)
        self._reset()

    def _reset(self) -> None:
        """Start the policy's state again, without any reward."""
        state = saved_state.started(self._policy, self._arms, self.context)
        self._memory, self._shared, self._models = state.memory, state.shared, state.models
        self._tree = None
        self._prepare()

    def _saved_state(self) -> SavedState:
        """Return all that the bandit remembers."""
        return SavedState(
            policy=self._policy,
            law=self._law,
            seed=self._seed,
            step=self._step,
            arms=self._arms,
            limits=self._limits,
            contexts=self._contexts,
            memory=self._memory,
            shared=self._shared,
            models=self._models,
            tree=self._tree,
        )

    def _take(self, saved: SavedState) -> None:
        """Continue from this state, which then belongs to the bandit."""
        for name, part in saved._asdict().items():
            setattr(self, f"_{name}", part)
        self._prepare()

    def _copy_with(self, saved: SavedState) -> "Bandit":
        other = copy.copy(self)
        other._take(saved)
        return other

    def _prepare(self) -> None:
        """Compute what follows from the policy, the seed and the arms."""
        functions = self._policy.functions
        self._columns = self._arms.available()
        self._all_open = len(self._columns) == len(self._arms)
        self._params, self._space = self._sized(self._arms.count_open())
        if not uses_draw_tree(functions, len(self._columns)):
            self._tree = None
        elif self._tree is None:
            self._tree = ArmTree(functions)
        self._signed_seed = signed_seed(self._seed)
        self._in_burn_in = True
        self._rewards = accepted_rewards(self._policy, self._law)
        self._choice_law = choice_of(functions)
        if self._choice_law is not None and self._choice_law.law is not None:
            self._write_laws = write_laws(functions)
        choose, learn = self._compiled_functions()
        self._choose, self._learn = interpreted_first(choose), interpreted_first(learn)

    def _compiled_functions(self) -> tuple[Callable[..., int], Callable[..., None]]:
        """Return the compiled functions of the policy that choose an arm and learn a reward."""
        return compiled_choose_and_learn(self._policy.functions, in_context=self._models is not None)

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self._policy

    @property
    def rewards(self) -> RewardDomain:
        """Which rewards are accepted."""
        return self._rewards

    @property
    def features(self) -> FeatureEncoder | None:
        """The features of a context, with the means and variances so far; None without features."""
        return None if self._contexts is None else self._contexts.encoder.copy()

    @property
    def context(self) -> Context | None:
        """The shape of the features that a policy sees; None without features."""
        return None if self._contexts is None else self._contexts.shape

    @property
    def seed(self) -> int:
        """The seed of all randomness."""
        return self._seed

    @property
    def step(self) -> int:
        """How many decisions were made."""
        return self._step

    @property
    def arms(self) -> Arms:
        """What is known about each arm, by name."""
        return Arms((name, self._describe(column)) for name, column in self._arms.index.items())

    def belief(self, column: int) -> Belief:
        """Return the policy's belief about a column, even if its arm was removed; infinite if it is too large."""
        try:
            return self._policy.belief(self._memory[:, column], self._shared)
        except (ArithmeticError, ValueError):  # such as a logarithm of 0
            return Belief(math.inf, math.inf, 1.0, math.inf)

    def plays(self, column: int) -> int:
        """Return how many decisions have taken a column."""
        return int(self._arms.plays[column])

    def pending(self, column: int) -> int:
        """Return how many decisions for a column have neither a reward nor were closed."""
        return int(self._arms.pending[column])

    def _describe(self, column: int) -> Arm:
        arms = self._arms
        return Arm(
            *self.belief(column),
            idle=self._step - int(arms.last_played[column]),
            plays=self.plays(column),
            paused=bool(arms.paused[column]),
            pending=self.pending(column),
        )

    @property
    def names(self) -> Sequence[str]:
        """The name of every column, removed arms included; the column of an arm never changes."""
        return self._arms.names

    def column(self, name: str) -> int:
        """Return the column of an arm that was not removed, or raise an error that lists the arms."""
        return self._arms.of(name)

    @property
    def active(self) -> Collection[str]:
        """The names of the arms that were not removed."""
        return self._arms.index.keys()

    @property
    def nbytes(self) -> int:
        """Roughly how many bytes a copy takes."""
        return self._saved_state().nbytes

    def keep_no_contexts(self) -> None:
        """Forget the contexts of decisions at once: every reward is then given with its context, encoded as of now."""
        if self._contexts is not None:
            self._contexts.kept = 0

    def swapped(
        self,
        policy: Policy | str,
        rewards: Iterable[tuple[Any, ...]],
        encoder: FeatureEncoder | None = None,
        /,
        **parameters: Any,
    ) -> "Bandit":
        """Return a bandit that continues with another `policy`, with these `parameters`, that has learned `rewards`.

        Each reward is a triple (column, reward, decided_at). If the bandit has features, a fourth element is the
        context; it is encoded by `encoder`, by default with the means and variances so far.
        """
        other = self.copy()
        if encoder is not None and other._contexts is not None:
            other._contexts.encoder = encoder.copy()
        chosen = resolved(policy, self._rewards, contextual=self._contexts is not None)
        other._policy = live_policy(make_policy(chosen, **parameters))
        other._law = self._law or law_after_change(self._rewards, other._policy)
        other._reset()
        triples, latest = iter(rewards), 0
        while some := list(itertools.islice(triples, MANY_REWARDS)):
            latest = other.reward_columns(some, latest)
        other._arms = self._arms.copy()  # the decisions of these rewards are not pending
        other._contexts = copy_of(self._contexts)
        return other

    def adopting(self, other: "Bandit") -> "Bandit | None":
        """Return a bandit that continues from this step with the policy of another bandit and what it has learned.

        Returns None if the other bandit learned about other arms or features; `swapped` is then the only way.
        """
        adopted = saved_state.adopted(self._saved_state(), other._saved_state())
        return None if adopted is None else self._copy_with(adopted)

    def compile(self) -> None:
        """Compile the functions for decisions and rewards now, and wait for it.

        Otherwise the first decisions are made by interpreted code while another thread compiles (docs/performance.md).
        """
        self._choose, self._learn = self._compiled_functions()
        other = self.copy()  # because it plays and learns
        other._choose, other._learn = self._choose, self._learn
        vector = None if other._contexts is None else np.zeros(other._contexts.encoder.dimension)
        few = other._columns[:2]  # for which the same functions are compiled
        if len(few) > 0:
            other._by_policy(few, self._step + 1, vector)
            if other._tree is not None:
                other._tree.choose(other._tree_input(), self._step + 1, few, excluded=few[:1])
            other._in_burn_in = False
            other._exact_probabilities(few, vector, count_pending=True)
        if other._models is None:
            other.reward_column(0, 0.0, 0)
        else:
            other._learn_vector(0, 0.0, 0, vector, other._arms.played)

    def add_arm(self, name: str, features: Mapping[str, Any] | None = None) -> None:
        """Add an arm without rewards.

        Parameters
        ----------
        name
            The name of the arm; that of a removed arm can be used again.
        features
            The features of the arm, by name, if the bandit was made with `arm_features`.
        """
        contexts = None if self._contexts is None else self._contexts.with_arm(name, features)
        if contexts is None and features is not None:
            raise TypeError(f"features must be None: the bandit was made without arm_features=..., got {features!r}")
        check_state_size(self._policy, len(self._arms) + 1, None if contexts is None else contexts.shape)
        self._arms.add(name, self._step)
        self._contexts = contexts
        if self._limits is not None:
            self._limits.grow()
        state = saved_state.with_arm(self._saved_state())
        self._memory, self._models = state.memory, state.models
        self._prepare()

    def remove_arm(self, name: str) -> None:
        """Remove an arm: it is not chosen again, and accepts no more rewards."""
        self._arms.remove(name)
        self._prepare()

    def pause_arm(self, name: str) -> None:
        """Exclude an arm from every choice until `resume_arm`; its rewards still count."""
        self._arms.paused[self._arms.of(name)] = True
        self._prepare()

    def resume_arm(self, name: str) -> None:
        """Let a paused arm be chosen again."""
        self._arms.paused[self._arms.of(name)] = False
        self._prepare()

    def paused(self, name: str) -> bool:
        """Return whether an arm is paused."""
        return bool(self._arms.paused[self._arms.of(name)])

    def limit_arm(self, name: str, min_share: float = 0.0, max_share: float = 1.0) -> None:
        """Limit the share of the decisions that an arm gets from now on.

        Parameters
        ----------
        name
            The name of the arm.
        min_share
            The probability with which the arm is chosen without asking the policy.
        max_share
            After n decisions the arm was chosen at most ``ceil(max_share * n)`` times; it takes precedence.
        """
        limits = self._limits or TrafficLimits(len(self._arms))
        limits.limit(self._arms.of(name), min_share, max_share, self._arms.active)
        self._limits = None if limits.unlimited else limits

    def shares(self, name: str) -> tuple[float, float]:
        """Return the minimum and the maximum share of an arm."""
        column = self._arms.of(name)
        return (0.0, 1.0) if self._limits is None else self._limits.of(column)

    def copy(self) -> "Bandit":
        """Return an independent copy."""
        return self._copy_with(self._saved_state().copy())

    def reseeded(self, seed: int) -> "Bandit":
        """Return an independent copy with another seed."""
        seed = integer("seed", seed, 0, LARGEST_SEED)
        return self._copy_with(self._saved_state().copy()._replace(seed=seed))

    def to_json(self) -> str:
        """Return the complete state as JSON; `from_json` continues with the same choices."""
        return saved_state.to_json(self._saved_state())

    def state_hash(self) -> str:
        """Return a hash of the complete state: two bandits with equal hashes make the same decisions from now on."""
        return self._saved_state().hash()

    @classmethod
    def from_json(cls, text: str, policy: Policy | None = None) -> "Bandit":
        """Return the bandit that `to_json` wrote, which continues with the same choices.

        Parameters
        ----------
        text
            What `to_json` returned.
        policy
            The policy, which is needed if it is not in the registry.
        """
        bandit = cls.__new__(cls)
        bandit._take(saved_state.from_json(text, policy))
        return bandit

    def __repr__(self) -> str:
        names = list(self._arms.index)
        shown = names if len(names) <= 5 else [*names[:4], "..."]
        return f"Bandit({self._policy.label}, arms [{', '.join(shown)}], step {self._step})"
