"""Rows of two bodies' contacts: gaps and slips without force, forces, axes in a body."""

from palpo.physics.numerics.kernels import kernel


@kernel
def free_gaps(contacts, p, q, rotation_2, b):
    """b (3 n,) = x_free of each contact [m]: its gap, and its slip since it was anchored, without force.

    p, q (n, 3): where the points of the mobile and of the fixed body stand without contact force [m].
    """
    for k in range(contacts.count[0].found):
        for d in range(3):
            total = 0.0
            for i in range(3):
                total += contacts.frame[k, d, i] * (p[k, i] - q[k, i])
                if d > 0:
                    for j in range(3):
                        total -= contacts.frame[k, d, i] * rotation_2[i, j] * contacts.remainder[k, j]
            b[3 * k + d] = total


@kernel
def starting_forces(contacts, rotation_2, r):
    """r (3 n,) = the force of the last equilibrium [N] in the contacts' present axes."""
    for k in range(contacts.count[0].found):
        for d in range(3):
            total = 0.0
            for i in range(3):
                for j in range(3):
                    total += contacts.frame[k, d, i] * rotation_2[i, j] * contacts.force[k, j]
            r[3 * k + d] = total


@kernel
def contact_forces(contacts, r, out):
    """out (n, 3) = force of each contact on the mobile body [N], world axes."""
    for k in range(contacts.count[0].found):
        for i in range(3):
            out[k, i] = (
                contacts.frame[k, 0, i] * r[3 * k]
                + contacts.frame[k, 1, i] * r[3 * k + 1]
                + contacts.frame[k, 2, i] * r[3 * k + 2]
            )


@kernel
def body_axes(frame, member, rotation, scale, out):
    """out (n, 3, 3) = scale times rows n, t1, t2 of the contacts member (n,) in a body of that rotation."""
    for k in range(member.shape[0]):
        axes = frame[member[k]]
        for d in range(3):
            for i in range(3):
                out[k, d, i] = scale * (
                    rotation[0, i] * axes[d, 0] + rotation[1, i] * axes[d, 1] + rotation[2, i] * axes[d, 2]
                )
