"""How many contacts there are."""

import numpy as np

CONTACT_COUNT = np.dtype([("found", np.int64), ("lost", np.int64)])
"""Those in the list, and those that found no room in it."""
