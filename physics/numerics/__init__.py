from palpo.physics.numerics.numba_range import require_numba

require_numba()
