"""One thread for BLAS, settled by `app` before numpy is imported: results are bit-reproducible."""

from hypothesis import settings

import palpo.app  # noqa: F401

# the first example of a kernel compiles it, and a run of the suite must not depend on the day's dice
settings.register_profile("palpo", deadline=None, derandomize=True)
settings.load_profile("palpo")
