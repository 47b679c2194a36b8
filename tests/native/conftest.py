import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tierup.runtime import config

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="session")
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither use nor fill the user's object cache."""
    before = config.current()
    config.set_current(before.replace(cache_dir=str(tmp_path_factory.mktemp("cache") / "objects"), strict=True))
    yield
    config.set_current(before)
