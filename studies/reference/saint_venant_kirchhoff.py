"""St Venant-Kirchhoff tetrahedra in total Lagrangian form: energy, internal force and exact tangent.

Green-Lagrange strain E = (F^T F - I) / 2, second Piola-Kirchhoff stress S = lam tr(E) I + 2 mu E (001,
N. Talbi's thesis, 1.13 to 1.19; Bonet & Wood, Nonlinear Continuum Mechanics for Finite Element Analysis,
chapters 6 and 9). The gradients g_a being constant in an element, with t_a = F g_a:
  force      f_a  = -V F S g_a
  tangent    K_ab =  V [ lam t_a t_b^T + mu t_b t_a^T + mu (g_a . g_b) F F^T ] + V (g_a . S g_b) I
The first term of the tangent (K_e + K_u of 001) is positive semidefinite; the second (K_sigma) is not
under compression. The law itself softens there: below a stretch of 1/sqrt(3) a bar pushes back less and less.
"""

import numpy as np

from palpo.physics.numerics.kernels import kernel


@kernel
def deformation_gradient(u, tet, g, f):
    """f (3, 3) = I + sum_a u_a g_a^T of one element; u (n, 3) [m], g (4, 3) [1/m]."""
    for i in range(3):
        for j in range(3):
            f[i, j] = 1.0 if i == j else 0.0
            for a in range(1, 4):
                f[i, j] += (u[tet[a], i] - u[tet[0], i]) * g[a, j]


@kernel
def stress(f, lam, mu, s):
    """s (3, 3) = S of the deformation gradient f (3, 3) [Pa]; returns the energy density [J/m3]."""
    squares, trace = 0.0, 0.0
    for i in range(3):
        for j in range(3):
            c = f[0, i] * f[0, j] + f[1, i] * f[1, j] + f[2, i] * f[2, j]
            s[i, j] = 0.5 * (c - 1.0) if i == j else 0.5 * c
            squares += s[i, j] * s[i, j]
        trace += s[i, i]
    for i in range(3):
        for j in range(3):
            s[i, j] *= 2.0 * mu
        s[i, i] += lam * trace
    return 0.5 * lam * trace * trace + mu * squares


@kernel
def elastic_energy(u, tets, g, volumes, lam, mu):
    """Strain energy of displacements u (n, 3) [m], in joules."""
    f, s = np.empty((3, 3)), np.empty((3, 3))
    energy = 0.0
    for e in range(tets.shape[0]):
        deformation_gradient(u, tets[e], g[e], f)
        energy += volumes[e] * stress(f, lam, mu, s)
    return energy


@kernel
def add_internal_forces(u, tets, g, volumes, lam, mu, force):
    """force (n, 3) += f_int [N] of displacements u (n, 3) [m]."""
    f, s = np.empty((3, 3)), np.empty((3, 3))
    for e in range(tets.shape[0]):
        deformation_gradient(u, tets[e], g[e], f)
        stress(f, lam, mu, s)
        for i in range(3):
            for j in range(3):
                p = 0.0
                for k in range(3):
                    p += f[i, k] * s[k, j]
                for a in range(4):
                    force[tets[e, a], i] -= volumes[e] * p * g[e, a, j]


@kernel
def assemble_tangent(u, tets, g, volumes, lam, mu, convex, pair_block, blocks):
    """blocks (n_blocks, 9) = lower 3x3 blocks of K = -df_int/du [N/m], by physics.fem.assembly's pattern.

    convex: without K_sigma wherever that could be negative, so that the matrix is positive semidefinite.
    """
    blocks[:] = 0.0
    f, s, b = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    t, sg = np.empty((4, 3)), np.empty((4, 3))
    for e in range(tets.shape[0]):
        deformation_gradient(u, tets[e], g[e], f)
        stress(f, lam, mu, s)
        stressed = not convex or _is_tension(s)
        for i in range(3):
            for j in range(3):
                b[i, j] = f[i, 0] * f[j, 0] + f[i, 1] * f[j, 1] + f[i, 2] * f[j, 2]
            for a in range(4):
                t[a, i] = f[i, 0] * g[e, a, 0] + f[i, 1] * g[e, a, 1] + f[i, 2] * g[e, a, 2]
                sg[a, i] = s[i, 0] * g[e, a, 0] + s[i, 1] * g[e, a, 1] + s[i, 2] * g[e, a, 2]
        v, pair = volumes[e], 0
        for p in range(4):
            for q in range(p + 1):
                k = pair_block[e, pair]
                pair += 1
                if k < 0:
                    continue
                dot, initial = 0.0, 0.0
                for i in range(3):
                    dot += g[e, p, i] * g[e, q, i]
                    initial += g[e, p, i] * sg[q, i]
                for i in range(3):
                    for j in range(3):
                        material = lam * t[p, i] * t[q, j] + mu * (t[q, i] * t[p, j] + dot * b[i, j])
                        blocks[k, 3 * i + j] += v * material
                    if stressed:
                        blocks[k, 4 * i] += v * initial


@kernel
def _is_tension(s):
    """Whether the stress s (3, 3) is positive semidefinite, by its leading minors."""
    minor = s[0, 0] * s[1, 1] - s[0, 1] * s[0, 1]
    determinant = (
        s[2, 2] * minor
        - s[0, 0] * s[1, 2] * s[1, 2]
        - s[1, 1] * s[0, 2] * s[0, 2]
        + 2.0 * s[0, 1] * s[1, 2] * s[0, 2]
    )
    return s[0, 0] > 0.0 and minor > 0.0 and determinant > 0.0
