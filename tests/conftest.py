"""One thread for BLAS, settled by `app` before numpy is imported: results are bit-reproducible, and faster."""

import app  # noqa: F401
