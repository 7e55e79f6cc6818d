"""A reading of libHD in the servo's units: metres, and a unit quaternion for its column-major transform."""

import math

from palpo.physics.numerics.kernels import kernel


@kernel
def quaternion_of(transform, out):
    """out (4,) = unit quaternion of the rotation in a column-major transform (16,); False if it is none.

    The largest of the four components is computed first and divides the others, so that no rotation loses
    digits (Shepperd 1978). Of q and -q the one nearer to the old `out` is taken.
    """
    r00, r10, r20 = transform[0], transform[1], transform[2]
    r01, r11, r21 = transform[4], transform[5], transform[6]
    r02, r12, r22 = transform[8], transform[9], transform[10]
    trace = r00 + r11 + r22
    largest = max(trace, r00, r11, r22)
    if largest == trace:
        w, x, y, z = 1.0 + trace, r21 - r12, r02 - r20, r10 - r01
    elif largest == r00:
        w, x, y, z = r21 - r12, 1.0 + 2.0 * r00 - trace, r01 + r10, r02 + r20
    elif largest == r11:
        w, x, y, z = r02 - r20, r01 + r10, 1.0 + 2.0 * r11 - trace, r12 + r21
    else:
        w, x, y, z = r10 - r01, r02 + r20, r12 + r21, 1.0 + 2.0 * r22 - trace
    norm = math.sqrt(w * w + x * x + y * y + z * z)
    # 2 at least for a rotation; not so if an entry is not finite or the matrix is far from one
    if not 1.0 < norm < 8.0:
        return False
    if w * out[0] + x * out[1] + y * out[2] + z * out[3] < 0.0:
        norm = -norm
    out[0], out[1], out[2], out[3] = w / norm, x / norm, y / norm, z / norm
    return True


@kernel
def convert_reading(transform, velocity, buttons, port):
    """Bring a reading of libHD [mm, mm/s] into the port [m, m/s]; False if it is not finite.

    Its angular velocity is not asked for: some drivers give none, others one in axes of their own.
    """
    total = 0.0
    for i in range(3):
        total += transform[12 + i] + velocity[i]
    if not (math.isfinite(total) and quaternion_of(transform, port.orientation)):
        return False
    for i in range(3):
        port.position[i] = 1e-3 * transform[12 + i]
        port.velocity[i] = 1e-3 * velocity[i]
    port.buttons[0] = buttons[0]
    return True
