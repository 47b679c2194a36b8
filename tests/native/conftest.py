from collections.abc import Iterator

import pytest

from tierup.runtime import config


@pytest.fixture(autouse=True, scope="session")
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither use nor fill the user's object cache."""
    before = config.current()
    config.set_current(before.replace(cache_dir=str(tmp_path_factory.mktemp("cache") / "objects"), strict=True))
    yield
    config.set_current(before)
