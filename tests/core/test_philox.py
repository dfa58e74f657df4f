import pytest
from hypothesis import given, strategies as st

from dynabandit.core.compilation import compiled
from dynabandit.core.philox import philox

BACKENDS = {"interpreted": philox, "compiled": compiled(philox)}
ONES = 0xFFFFFFFF
WORD = st.integers(0, ONES)

# Known answers of philox4x32-10 from the kat_vectors file of the Random123 distribution: counter, key, words
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS, ids=["zeros", "ones", "pi"])
def test_philox_gives_the_published_known_answers(
    backend: str, counter: tuple[int, ...], key: tuple[int, ...], words: tuple[int, ...]
) -> None:
    assert tuple(BACKENDS[backend](*counter, *key)) == words


@given(WORD, WORD, WORD, WORD, WORD, WORD)
def test_compiled_philox_equals_unbounded_integers(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> None:
    interpreted = philox(c0, c1, c2, c3, k0, k1)
    assert BACKENDS["compiled"](c0, c1, c2, c3, k0, k1) == interpreted
    assert all(0 <= word <= ONES for word in interpreted)
