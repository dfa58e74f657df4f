"""The form asks for every parameter of every policy, and starts from its default."""

import dataclasses
import re
from typing import ClassVar

import pytest

from dynabandit.catalogue import Entry, entries
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS
from dynabandit.playground import form_fields, read
from dynabandit.playground.drawn_means import encode
from dynabandit.playground.link import CONTEXTUAL, DRAWN
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, Policy
from dynabandit.validation import number

CATALOGUE = form_fields.catalogue()
ALL_POLICIES = {**POLICIES, **CONTEXTUAL_POLICIES}


def test_every_policy_is_there_with_all_its_parameters_explained() -> None:
    assert [one["name"] for one in CATALOGUE["policies"]] == list(ALL_POLICIES)
    for one in CATALOGUE["policies"]:
        names = {field.name for field in dataclasses.fields(ALL_POLICIES[one["name"]])}
        assert {field["name"] for field in one["fields"]} == names
        assert one["contextual"] == (one["name"] in CONTEXTUAL_POLICIES)
        assert all(field["explanation"] and "`" not in field["explanation"] for field in one["fields"])


@pytest.mark.parametrize("entry", [*entries(ALL_POLICIES), *entries({**ENVIRONMENTS, **CONTEXTUAL_ENVIRONMENTS})])
def test_every_description_is_one_or_two_sentences_without_formulas(entry: Entry) -> None:
    text = " ".join(entry.description.split())
    assert 1 <= len(re.findall(r"\.(?: |$)", text)) <= 2
    assert len(text) < 250
    assert text.endswith(".")
    assert not re.search(r"[`=^~<>_\\]|\bsqrt\b|\blog\b", text)
    if entry.name in ALL_POLICIES:  # what it does, and when to use it
        assert ". " in text


@pytest.mark.parametrize("name", list(ALL_POLICIES))
def test_the_default_is_a_step_of_each_slider_and_both_ends_are_valid(name: str) -> None:
    fields = next(one["fields"] for one in CATALOGUE["policies"] if one["name"] == name)
    world = f"environment={CONTEXTUAL if name in CONTEXTUAL_POLICIES else 'small-changes'}"
    for field in fields:
        assert (field["kind"] == "pair") == isinstance(field["default"], tuple)
        if not field["steps"]:
            continue
        assert field["default"] is None or field["default"] in field["steps"]
        assert list(field["steps"]) == sorted(set(field["steps"]))
        for end in (field["steps"][0], field["steps"][-1]):
            read(f"v=1&{world}&horizon=100000&replications=1&policies={name}:{field['name']}={end}")
        if field["word"] is not None:
            read(f"v=1&{world}&policies={name}:{field['name']}={field['word']}")


def test_sliders_move_in_round_numbers_on_the_scale_of_their_parameter() -> None:
    steps = {name: control.steps for name, control in form_fields.CONTROLS.items()}
    assert steps["burn_in"] == tuple(range(51))
    assert all(isinstance(number, int) for number in steps["window"])
    assert steps["window"][:8] == (1, 2, 3, 4, 5, 6, 8, 10)
    assert steps["window"][-1] == 10_000
    assert steps["step_size"][:4] == (0.00001, 0.000012, 0.000015, 0.00002)
    assert steps["step_size"][-1] == 0.1
    assert steps["discount"][:3] == (0.5, 0.6, 0.7)
    assert steps["discount"][-4:] == (0.99985, 0.99988, 0.9999, 1)
    assert steps["epsilon"][:3] == (0, 0.01, 0.02)
    assert steps["epsilon"][-1] == 1


def test_each_environment_can_be_run_with_the_fewest_and_the_most_arms() -> None:
    for one in CATALOGUE["environments"]:
        assert one["title"]
        assert one["contextual"] == (one["name"] in CONTEXTUAL_ENVIRONMENTS)
        assert one["name"] in {*ENVIRONMENTS, *CONTEXTUAL_ENVIRONMENTS, DRAWN}
        for arms in (one["low"], one["high"]):
            drawn = f"&drawn={encode(((25,) * 60,) * arms)}" if one["name"] == DRAWN else ""
            assert read(f"v=1&environment={one['name']}&arms={arms}&policies=ucb{drawn}").arms == arms


@dataclasses.dataclass(frozen=True, kw_only=True)
class Newcomer(Policy):
    """A policy that the form knows nothing about."""

    name: ClassVar[str] = "newcomer"
    penalty: float = 3.0
    chance: float = 0.02
    length: int = 40
    limit: float | None = None
    eager: bool = True
    corners: tuple[float, float] = (0.0, 1.0)
    way: str = "fast"
    window: int = 50_000
    step_size: float = 0.1

    def __post_init__(self) -> None:
        number("chance", self.chance, 0.0, 1.0)
        number("step_size", self.step_size, 0.0, 1.0)


def test_parameters_that_nobody_described_get_fields_by_their_defaults() -> None:
    found = {
        field.name: form_fields.control(Newcomer, field.name, field.default) for field in dataclasses.fields(Newcomer)
    }
    kinds = {name: control.kind for name, control in found.items()}
    assert kinds == dict.fromkeys(kinds, "number") | {"eager": "flag", "corners": "pair", "way": "text"}
    assert (found["penalty"].steps[0], found["penalty"].steps[-1]) == (0.03, 300.0)
    assert found["chance"].steps[-1] == 0.2  # the policy takes no 2
    assert (found["length"].steps[0], found["length"].steps[-1]) == (1, 4000)
    assert all(isinstance(number, int) for number in found["length"].steps)
    assert found["limit"].steps == ()


def test_a_slider_is_made_to_fit_a_policy_that_means_something_else_by_a_name() -> None:
    assert form_fields.control(Newcomer, "window", 50_000).steps[-1] == 5_000_000
    assert form_fields.control(Newcomer, "step_size", 0.1).word is None
    assert form_fields.control(Newcomer, "threshold", None).steps == ()
    assert form_fields.control(POLICIES["aff-d-greedy"], "threshold", None).steps[-1] == 1
