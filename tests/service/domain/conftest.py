from typing import Any

import pytest

from tools.shop import Shop


@pytest.fixture
def make_shop(sqlite_url: str) -> Any:
    made = []

    def make(**given: Any) -> Shop:
        made.append(Shop(sqlite_url, **given))
        return made[-1]

    yield make
    for shop in made:
        shop.store.close()
