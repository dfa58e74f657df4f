from pathlib import Path

import pytest

from distribution.archives import build


@pytest.fixture(scope="session")
def dist(tmp_path_factory) -> Path:
    """What `make dist` builds."""
    folder = tmp_path_factory.mktemp("dist")
    build(folder)
    return folder
