"""The composer: commands, builder, threads, reports.

Two things must be settled before numpy and numba are imported, which is why they stand here: one thread
for BLAS, without which a replay would not be bit-equal, and a place for compiled code that can be written.
"""

import os
import tempfile
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_threads] = "1"

_beside = Path(__file__).parent
if not (os.access(_beside, os.W_OK) or os.access(Path.home(), os.W_OK)):
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / "palpo-numba"))
