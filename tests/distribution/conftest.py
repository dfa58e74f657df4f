from pathlib import Path

import pytest

from distribution.archives import build


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the archives of `make dist`."""
    folder = tmp_path_factory.mktemp("dist")
    build(folder)
    return folder
