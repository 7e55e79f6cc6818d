"""One thread for BLAS, settled by `app` before numpy is imported: results are bit-reproducible."""

import app  # noqa: F401
