"""One thread for BLAS, settled by `app` before numpy is imported: results are bit-reproducible."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

import palpo.app  # noqa: F401
from palpo.physics.numerics.kernels import cache_home

# the first example of a kernel compiles it, and a run of the suite must not depend on the day's dice
settings.register_profile("palpo", deadline=None, derandomize=True)
settings.load_profile("palpo")


def pytest_collection_finish() -> None:
    """Garbage is looked for less often, and not in what is imported by now: that took 8% of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


# found once in a process: before a test names a folder of its own for what scenes compute
cache_home()


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the scenes of a module compute, bases and inverses, stays with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
