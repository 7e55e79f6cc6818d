"""The composer: commands, builder, threads, reports.

One thing must be settled before numpy is imported, which is why it stands here: one thread for BLAS, without
which a replay would not be bit-equal.
"""

import os

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_threads] = "1"
