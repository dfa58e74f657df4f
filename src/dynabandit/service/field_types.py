"""The types of single fields of requests and responses, and their limits."""

from typing import Annotated, Literal

from msgspec import Meta

from dynabandit.validation import LARGEST_REWARD

MAX_ARMS = 100_000
MAX_DECISIONS = 1_000
MAX_AMONG = 1_000
MAX_RANKED = 50
MAX_REWARDS = 10_000
MAX_PREVIEW_DRAWS = 10_000
MAX_WINDOW = 10.0 * 365 * 86400

Share = Annotated[float, Meta(ge=0, le=1)]
RewardValue = Annotated[
    float, Meta(ge=-LARGEST_REWARD, le=LARGEST_REWARD, description="A reward; most policies need a number in [0, 1].")
]
RewardLaw = Literal["bernoulli", "bounded", "normal", "counts", "revenue"]
Name = Annotated[str, Meta(min_length=1, max_length=200, extra_json_schema={"not": {"enum": [".", ".."]}})]
ArmName = Annotated[str, Meta(min_length=1, max_length=200)]  # of an arm that exists
# A body may be large because it may have many arms; a policy and its parameters have limits of their own
Policy = Annotated[str, Meta(max_length=100)]
Key = Annotated[str, Meta(max_length=100)]
Value = bool | int | float | Annotated[str, Meta(max_length=200)] | None | Annotated[list[float], Meta(max_length=1000)]
Parameters = Annotated[dict[Key, Value], Meta(max_length=64)]
FeatureName = Annotated[str, Meta(min_length=1, max_length=100)]
FeatureOption = bool | int | float | None | Name | Annotated[list[Name | float], Meta(max_length=1000)]
Features = Annotated[
    dict[FeatureName, Literal["number", "boolean", "category", "vector", "hashed"] | dict[Key, FeatureOption]],
    Meta(min_length=1, max_length=256),
]
FeatureText = Annotated[str, Meta(max_length=1000)]
SingleValue = bool | Annotated[int, Meta(ge=-(2**53), le=2**53)] | float | FeatureText | None
FeatureValue = (
    SingleValue
    | Annotated[list[float], Meta(max_length=1024)]
    | Annotated[dict[FeatureText, SingleValue], Meta(max_length=1000)]
)
Context = Annotated[
    dict[FeatureName, FeatureValue], Meta(max_length=256, description="The value of each feature; null if missing.")
]
SignedUnit = Annotated[
    str,
    Meta(min_length=1, max_length=1000, description="The unit of a decision for a web page, as sign_unit returns it."),
]
Unit = Annotated[str, Meta(min_length=1, max_length=200, description="Whom the decision is for, such as a user.")]
