"""`palpo solve` and the files of contact problems: what was written comes back, what is wrong is said."""

import json
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

from palpo.app.cli.main import main
from palpo.physics.contact.io import read_problem, write_fclib
from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contact.problem import ContactProblem, SparseProblem, Stop
from palpo.physics.contact.solvers import gauss_seidel
from palpo.physics.contact.solvers.anderson import solve
from palpo.physics.contact.solvers.registry import find_solver, solver_names
from palpo.physics.contact.solving import solve as solve_matrices
from palpo.physics.numerics.errors import InputError
from tests.contact.stored import SHARED

OWN = Path(__file__).resolve().parents[1] / "contact" / "problems"
EASY = OWN / "easy.npz"
REAL = [
    SHARED / name
    for name in ("delassus_36.npz", "delassus_66.npz", "LMGC_100_PR_PerioBox-i00361-60-03000.hdf5")
]


def problem(n=5, seed=0):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, 3 * n))
    return ContactProblem(half @ half.T, rng.normal(size=3 * n), rng.uniform(0, 1, n))


def refused(path):
    with pytest.raises(InputError) as caught:
        read_problem(path)
    said = str(caught.value)
    assert said.startswith(str(path))
    assert "\n" not in said
    return said


def same(one, other):
    for key in ("w", "b", "mu"):
        assert getattr(one, key).tobytes() == getattr(other, key).tobytes()


def put_matrix(group, name, matrix, storage):
    """A sparse matrix in one of FCLIB's three storages."""
    part = group.create_group(name)
    kept = {"csc": sp.csc_array, "csr": sp.csr_array, "triplet": sp.coo_array}[storage](matrix)
    part["x"] = kept.data
    if storage == "triplet":
        part["i"], part["p"] = kept.coords
    else:
        part["i"], part["p"] = kept.indices, kept.indptr
    nz = {"csc": -1, "csr": -2, "triplet": kept.nnz}[storage]
    for key, value in {"m": kept.shape[0], "n": kept.shape[1], "nz": nz, "nzmax": kept.nnz}.items():
        part[key] = np.array([value], np.int32)


def write_local(path, held, storage="csc", spacedim=3, **more):
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_local")
        group["spacedim"] = [spacedim]
        put_matrix(group, "W", held.w, storage)
        for key, values in {"q": held.b, "mu": held.mu, **more}.items():
            group[f"vectors/{key}"] = values


def test_a_problem_comes_back_from_fclib_bit_for_bit(tmp_path):
    held = problem()
    held.w[0, 4] = held.w[4, 0] = 0.0
    held.w[np.diag_indices(15)] += abs(held.w).max()  # definite again
    write_fclib(tmp_path / "p.hdf5", held, "a title")
    same(read_problem(tmp_path / "p.hdf5"), held)


def test_a_written_file_has_the_keys_and_types_that_the_fclib_library_reads(tmp_path):
    """int32 scalars as arrays of one, indices int32, values float64, strings closed by a zero byte."""
    path = tmp_path / "p.hdf5"
    write_fclib(path, problem(), "a title", "from a test")
    with h5py.File(path) as file:
        group = file["fclib_local"]
        for key in ("spacedim", "W/m", "W/n", "W/nz", "W/nzmax"):
            assert (group[key].shape, group[key].dtype) == ((1,), np.int32)
        assert group["W/p"].dtype == group["W/i"].dtype == np.int32
        assert group["W/x"].dtype == group["vectors/q"].dtype == group["vectors/mu"].dtype == np.float64
        assert len(group["W/x"]) == group["W/nzmax"][0]
        for key, text in {"title": b"a title", "description": b"from a test"}.items():
            assert group[f"info/{key}"][()] == text
            assert group[f"info/{key}"].dtype.itemsize == len(text) + 1


@pytest.mark.parametrize("storage", ["csc", "csr", "triplet"])
def test_every_storage_gives_the_same_matrix(tmp_path, storage):
    held = problem()
    held.w[np.abs(held.w) < 1.0] = 0.0
    held.w[np.diag_indices(15)] += abs(held.w).max()
    write_local(tmp_path / "p.h5", held, storage)
    same(read_problem(tmp_path / "p.h5"), held)


def test_an_archive_comes_back_bit_for_bit(tmp_path):
    held = problem()
    np.savez(tmp_path / "p.npz", W=held.w, q=held.b, mu=held.mu)
    same(read_problem(tmp_path / "p.npz"), held)


def write_global(path, m, h, f, w, mu, g=None, b=None):
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_global")
        group["spacedim"] = [3]
        put_matrix(group, "M", m, "csc")
        put_matrix(group, "H", h, "csr")
        for key, values in {"f": f, "w": w, "mu": mu}.items():
            group[f"vectors/{key}"] = values
        if g is not None:
            put_matrix(group, "G", g, "triplet")
            group["vectors/b"] = b


@pytest.mark.parametrize("bilateral", [False, True])
def test_the_solution_of_a_global_problem_balances_the_global_equations(tmp_path, bilateral):
    """M v = H r + G l + f and G^T v + b = 0, with u = H^T v + w the local u = W r + q."""
    rng = np.random.default_rng(3)
    size, n, p = 12, 3, 2
    half = rng.normal(size=(size, size))
    m, h, g = half @ half.T + np.eye(size), rng.normal(size=(size, 3 * n)), rng.normal(size=(size, p))
    f, w, b = rng.normal(size=size), rng.normal(size=3 * n), rng.normal(size=p)
    extra = {"g": g, "b": b} if bilateral else {}
    write_global(tmp_path / "p.hdf5", m, h, f, w, np.full(n, 0.4), **extra)
    local = read_problem(tmp_path / "p.hdf5")
    r = solve(local, Stop(1e-12, 50000)).r
    if bilateral:
        # v of the constrained bodies, by projection on the null space of G^T
        _, _, vt = np.linalg.svd(g.T)
        null, start = vt[p:].T, np.linalg.lstsq(g.T, -b, rcond=None)[0]
        v = start + null @ np.linalg.solve(null.T @ m @ null, null.T @ (h @ r + f - m @ start))
    else:
        v = np.linalg.solve(m, h @ r + f)
    # two eliminations of a system of condition 1e3
    np.testing.assert_allclose(local.w @ r + local.b, h.T @ v + w, rtol=0, atol=1e-11 * np.abs(v).max())


def test_the_mixed_problem_is_the_global_one_with_its_bilateral_rows_kept(tmp_path):
    """V^T r + R l + s = 0 eliminates to W - V R^-1 V^T and q - V R^-1 s."""
    held, rng = problem(), np.random.default_rng(4)
    v, r, s = rng.normal(size=(15, 2)), -np.diag([2.0, 3.0]), rng.normal(size=2)
    write_local(tmp_path / "p.h5", held, s=s)
    with h5py.File(tmp_path / "p.h5", "a") as file:
        put_matrix(file["fclib_local"], "V", v, "csc")
        put_matrix(file["fclib_local"], "R", r, "csc")
    local = read_problem(tmp_path / "p.h5")
    force = rng.normal(size=15)
    multiplier = -np.linalg.solve(r, v.T @ force + s)
    expected = held.w @ force + v @ multiplier + held.b
    np.testing.assert_allclose(local.w @ force + local.b, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.95])
def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path, suffix, share):
    path, held = tmp_path / f"p{suffix}", problem(20)
    if suffix == ".npz":
        np.savez(path, W=held.w, q=held.b, mu=held.mu)
    else:
        write_fclib(path, held, "whole")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    assert suffix in refused(path)


def damage(path, key, change):
    with h5py.File(path, "a") as file:
        values = change(file[key][()])
        del file[key]
        if values is not None:
            file[key] = values


@pytest.mark.parametrize(
    ("key", "change", "words"),
    [
        ("fclib_local/W/p", lambda v: None, ("fclib_local/W/p", "missing")),
        ("fclib_local/vectors/mu", lambda v: None, ("vectors/mu", "missing")),
        ("fclib_local/vectors/mu", lambda v: v[:-1], ("15 rows", "4 contacts")),
        ("fclib_local/vectors/mu", lambda v: -1.0 - v, ("mu[", "negative")),
        ("fclib_local/vectors/q", lambda v: v[:-1], ("vectors/q", "(14,)", "(15,)")),
        ("fclib_local/vectors/q", lambda v: v * np.nan, ("vectors/q", "NaN")),
        ("fclib_local/W/x", lambda v: v / 0.0, ("W/x", "infinity")),
        ("fclib_local/W/i", lambda v: v + 1, ("W/i", "0 to 14")),
        ("fclib_local/W/p", lambda v: v[::-1], ("W/p", "rise")),
        ("fclib_local/W/nz", lambda v: v * 0 - 7, ("W/nz", "-7")),
        ("fclib_local/W/x", lambda v: v + np.arange(v.size), ("symmetric", "apart")),
        ("fclib_local/spacedim", lambda v: v * 0 + 4, ("spacedim", "4")),
        ("fclib_local/spacedim", lambda v: v * 0 + 2, ("15 rows", "two rows")),
        ("fclib_local", lambda v: None, ("another kind",)),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_is_wrong_in_a_file_is_said_with_its_key(tmp_path, key, change, words):
    path = tmp_path / "p.hdf5"
    write_fclib(path, problem(), "good")
    if key == "fclib_local":
        with h5py.File(path, "w") as file:
            file["nodes"] = np.zeros(3)
    else:
        damage(path, key, change)
    said = refused(path)
    assert all(word in said for word in words), said


def test_an_unsymmetric_matrix_is_refused_with_how_much_and_where(tmp_path):
    held = problem()
    held.w[2, 5] += 0.01 * np.sqrt(held.w[2, 2] * held.w[5, 5])
    np.savez(tmp_path / "p.npz", W=held.w, q=held.b, mu=held.mu)
    said = refused(tmp_path / "p.npz")
    assert "W[2, 5]" in said
    assert "0.01" in said


@pytest.mark.parametrize("share", [1.5e-7, 1.3e-3])
@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_a_slightly_unsymmetric_w_is_read_as_its_symmetric_part_and_that_is_said(tmp_path, suffix, share):
    held, path, said = problem(), tmp_path / f"p{suffix}", []
    w = held.w.copy()
    w[2, 5] += share * np.sqrt(w[2, 2] * w[5, 5])
    if suffix == ".npz":
        np.savez(path, W=w, q=held.b, mu=held.mu)
    else:
        write_local(path, SimpleNamespace(w=w, b=held.b, mu=held.mu))
    read = read_problem(path, said.append)
    np.testing.assert_array_equal(read.w, 0.5 * (w + w.T))
    assert len(said) == 1 and "W[2, 5]" in said[0] and f"{share:.2g}" in said[0]
    # the solution is that of a W as far away, at most: both satisfy the other's problem to that
    result = find_solver("gauss-seidel").solve(read, Stop(1e-12, 100_000))
    assert result.converged
    assert natural_map_residual(held.w, held.b, held.mu, result.r) < 1e2 * share


def stiff_chain(bodies=4, stiff=2.6e8):
    """M of point masses on springs, one of them held by a penalty, whose M_00 is beyond all others."""
    m = sp.lil_array((3 * bodies, 3 * bodies))
    m.setdiag(2.0 + np.arange(3 * bodies) % 3)
    for i in range(3 * bodies - 3):
        m[i, i + 3] = m[i + 3, i] = -0.9
    m[0, 0] += stiff
    return sp.csc_array(m)


@pytest.mark.parametrize("take", [sp.tril, sp.triu])
@pytest.mark.parametrize("block", [1, 3])
def test_a_triangle_of_a_matrix_is_mirrored_and_said_however_stiff_a_penalty_is(tmp_path, take, block):
    """Stored by entries or by blocks: averaged with its empty half, it would lose half of each coupling."""
    m, rng, said = stiff_chain(), np.random.default_rng(2), []
    h = sp.csr_array(rng.normal(size=(12, 6)))
    blocks = sp.kron(np.ones((12 // block, 12 // block)), np.ones((block, block)), format="csr")
    half = (
        take(m)
        if block == 1
        else m * (take(blocks, k=0) + take(blocks, k=0).T > 1)
        + take(m * (sp.kron(1 - np.eye(4), np.ones((3, 3)), format="csr")))
    )
    for name, held in {"whole": m, "half": half}.items():
        write_global(tmp_path / f"{name}.h5", held, h, np.ones(12), np.zeros(6), np.full(2, 0.3))
    whole = read_problem(tmp_path / "whole.h5", pytest.fail)
    same(read_problem(tmp_path / "half.h5", said.append), whole)
    assert len(said) == 1 and "fclib_global/M" in said[0] and "triangle" in said[0] and "mirrored" in said[0]


def test_a_missing_coupling_is_refused_although_a_penalty_elsewhere_is_beyond_it(tmp_path):
    """1.5e-9 of the largest entry, but 0.4 of what the two rows have of their own."""
    m = stiff_chain().tolil()
    m[5, 8] = 0.0
    write_global(tmp_path / "p.h5", sp.csc_array(m), np.eye(12)[:, :6], np.ones(12), np.zeros(6),
                 np.full(2, 0.3))  # fmt: skip
    assert "M[5, 8]" in refused(tmp_path / "p.h5")


def test_matrices_of_one_triangle_are_refused_where_no_file_says_what_they_are():
    held = problem()
    for half in (np.triu(held.w), sp.csr_array(np.tril(held.w))):
        with pytest.raises(InputError, match="triangle"):
            solve_matrices((half, held.b, held.mu))


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda path: write_local(path, problem()), ("FCLIB", "local", "in space", "5 contacts", "15 x 15")),
        (
            lambda path: write_global(
                path, stiff_chain(), np.eye(12)[:, :6], np.ones(12), np.zeros(6), np.array([0.3, 0.5])
            ),
            ("FCLIB", "global", "M, H", "2 contacts", "mu 0.3 to 0.5"),
        ),
    ],
)
def test_solve_says_in_a_line_what_kind_of_problem_it_took_a_file_for(tmp_path, capsys, write, words):
    write(tmp_path / "p.h5")
    result = tmp_path / "result.json"
    assert main(["solve", str(tmp_path / "p.h5"), "--json", str(result)]) == 0
    kind = json.loads(result.read_text())["kind"]
    assert all(word in kind for word in words), kind
    captured = capsys.readouterr()
    assert kind in " ".join((captured.out + captured.err).split())


def test_symmetric_problems_are_read_without_a_word(tmp_path):
    write_fclib(tmp_path / "p.h5", problem(), "whole")
    read_problem(tmp_path / "p.h5", pytest.fail)


def test_a_slightly_unsymmetric_mass_is_symmetrised_before_it_is_eliminated(tmp_path):
    rng, said = np.random.default_rng(5), []
    half, h = rng.normal(size=(8, 8)), rng.normal(size=(8, 6))
    m = half @ half.T + np.eye(8)
    skew = m.copy()
    skew[1, 4] += 2e-6 * np.abs(m).max()
    write_global(tmp_path / "p.h5", skew, h, np.ones(8), np.zeros(6), np.full(2, 0.3))
    expected = h.T @ np.linalg.solve(0.5 * (skew + skew.T), h)
    read = read_problem(tmp_path / "p.h5", said.append)
    np.testing.assert_allclose(read.w, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert "fclib_global/M[1, 4]" in said[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_problem_in_the_plane_has_the_solution_of_its_two_rows(tmp_path, seed):
    """In the plane Coulomb's law is a complementarity problem of n contacts, solved here by enumeration."""
    n, rng, mu = 3, np.random.default_rng(seed), 0.4
    half = rng.normal(size=(2 * n, 2 * n))
    w, q = half @ half.T + np.eye(2 * n), rng.normal(size=2 * n)
    flat = SimpleNamespace(w=w, b=q, mu=np.full(n, mu))
    write_local(tmp_path / "p.h5", flat, spacedim=2)
    said = []
    read = read_problem(tmp_path / "p.h5", said.append)
    assert "plane" in said[0]
    for name in ("anderson", "gauss-seidel", "uzawa-global-bipotential-rho_min"):
        result = find_solver(name).solve(read, Stop(1e-12, 200_000))
        assert result.converged
        r = result.r.reshape(n, 3)
        assert (r[:, 2] == 0.0).all()
        found = r[:, :2].ravel()
        u, tight = (w @ found + q).reshape(n, 2), 1e-9
        for (force, along), (gap, slip) in zip(found.reshape(n, 2), u, strict=True):
            assert force >= 0.0 and gap >= -tight and force * gap <= tight
            assert abs(along) <= mu * force + tight
            # who slides is held back by all that friction has
            assert abs(slip) <= tight or along == pytest.approx(-np.sign(slip) * mu * force, abs=tight)


def chain(n, rng):
    """A chain of n contacts, W tridiagonal by blocks and definite: each body hangs on its neighbours."""
    own = sp.block_diag([np.diag([2.0, 3.0, 3.0]) + 0.1 * (a + a.T) for a in rng.random((n, 3, 3))])
    beside = sp.kron(sp.diags_array([-np.ones(n - 1)], offsets=[1]), np.diag([0.7, 0.5, 0.5]))
    return sp.csr_array(own + beside + beside.T)


def test_a_large_sparse_problem_stays_sparse_and_is_solved(tmp_path):
    n, rng = 30_000, np.random.default_rng(7)
    w, q, mu = chain(n, rng), rng.normal(size=3 * n), np.full(n, 0.3)
    write_local(tmp_path / "p.h5", SimpleNamespace(w=w, b=q, mu=mu), "csr")
    told = tmp_path / "told.json"
    assert main(["solve", str(tmp_path / "p.h5"), "--json", str(told), "--out", str(tmp_path / "r.npz")]) == 0
    (row,) = json.loads(told.read_text())["solvers"]
    assert row["solver"] == "portfolio" and row["residual"] <= 1e-8
    r = np.load(tmp_path / "r.npz")["portfolio"]
    u = (w @ r + q).reshape(n, 3)
    assert u[:, 0].min() > -1e-5 and r[0::3].min() >= 0.0
    read = read_problem(tmp_path / "p.h5")
    assert isinstance(read, SparseProblem)
    with pytest.raises(InputError, match=r"64.8 GB; .*gauss-seidel.* keeps it sparse"):
        find_solver("homotopy").solve(read)


@pytest.mark.parametrize("name", ["easy.npz", "wedge_gripped.npz", "rank_deficient_stack.npz"])
def test_sparse_sweeps_are_the_dense_ones(name):
    held = read_problem(OWN / name)
    kept = SparseProblem(sp.csr_array(held.w), held.b, held.mu)
    for sweeps in (10, 100_000):
        one, other = (gauss_seidel.solve(p, Stop(1e-10, sweeps)) for p in (held, kept))
        # the order of the sums differs, and the residual is asked after other sweeps
        np.testing.assert_allclose(other.r, one.r, rtol=0, atol=1e-7 * np.abs(one.r).max())
        assert other.converged == one.converged


def test_contacts_of_bodies_that_do_not_meet_stay_apart_when_a_global_problem_is_reduced(tmp_path):
    n, rng = 1200, np.random.default_rng(8)
    m = sp.diags_array(rng.uniform(1.0, 2.0, 3 * n), format="csc")
    h = sp.block_diag(list(rng.normal(size=(n, 3, 3))), format="csr")
    write_global(tmp_path / "p.h5", m, h, np.ones(3 * n), np.zeros(3 * n), np.full(n, 0.3))
    read = read_problem(tmp_path / "p.h5")
    assert isinstance(read, SparseProblem)
    assert read.w.nnz == 9 * n


def test_a_dense_problem_without_room_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr("palpo.physics.contact.io.MOST", 8.0 * 14**2)
    write_fclib(tmp_path / "p.h5", problem(), "whole")
    assert "W of 5 contacts is filled to 100%" in refused(tmp_path / "p.h5")


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_the_real_problems_are_read_and_solved(path):
    if not path.exists():
        pytest.skip(f"the real problems are not kept with the project: {path} is not there")
    assert find_solver("anderson").solve(read_problem(path), Stop(1e-8, 50_000)).converged


def test_a_singular_mass_is_refused(tmp_path):
    write_global(tmp_path / "p.h5", np.zeros((4, 4)), np.ones((4, 3)), np.ones(4), np.ones(3), np.ones(1))
    assert "fclib_global/M is singular" in refused(tmp_path / "p.h5")


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [("p.txt", b"", ".npz"), ("p.npz", b"no archive", "npz"), ("gone.h5", None, "no such")],
)
def test_other_files_are_refused(tmp_path, name, content, word):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert word in refused(tmp_path / name)


def test_the_table_the_json_and_the_forces_tell_the_same(tmp_path, capsys):
    out, told = tmp_path / "r.npz", tmp_path / "r.json"
    names = ("best", "gauss-seidel", "uzawa-global-pseudopotential-rho_min-printed")
    asked = [word for name in names for word in ("--solver", name)]
    status = main(["solve", str(EASY), *asked, "--tol", "1e-9", "--json", str(told), "--out", str(out)])
    summary, held, forces = json.loads(told.read_text()), read_problem(EASY), np.load(out)
    table = capsys.readouterr().out
    assert summary["exit_status"] == status == 0
    assert (
        [row["solver"] for row in summary["solvers"]]
        == ["portfolio", *names[1:]]
        == [key for key in forces if "/" not in key]
    )
    for row in summary["solvers"]:
        assert row["open"] + row["stick"] + row["slip"] == held.n_contacts == summary["contacts"]
        assert row["solver"] in table
        assert row["time_ms"] > 0.0
    printed = summary["solvers"][-1]
    assert not printed["consistent"]
    assert f"{printed['solver']} *" in table
    # one tolerance, one solution: well conditioned, so that the forces are as near as the residuals
    np.testing.assert_allclose(
        forces["portfolio"], forces["gauss-seidel"], atol=1e-7 * forces["portfolio"].max()
    )


def test_all_solvers_meet_a_stored_problem(tmp_path):
    told = tmp_path / "r.json"
    main(["solve", str(OWN / "hyperstatic_grip.npz"), "--solver", "all", "--json", str(told)])
    summary = json.loads(told.read_text())
    assert [row["solver"] for row in summary["solvers"]] == solver_names()
    assert all(row["residual"] is not None for row in summary["solvers"])


def test_a_solver_that_stops_short_gives_status_1_and_its_reason(tmp_path):
    told = tmp_path / "r.json"
    arguments = ["solve", str(OWN / "high_friction.npz"), "--json", str(told)]
    assert main([*arguments, "--max-iterations", "3"]) == 1
    summary = json.loads(told.read_text())
    assert summary["failed"] == ["portfolio"]
    assert summary["solvers"][0]["reason"] == "iterations"
    assert main([*arguments, "--tol", "1e-15", "--max-iterations", "1000000", "--time-cap", "1e-9"]) == 1
    assert json.loads(told.read_text())["solvers"][0]["reason"] in ("time", "stalled")


def test_one_that_solves_another_problem_does_not_decide_the_status():
    assert not find_solver("penalty-explicit").consistent
    assert main(["solve", str(EASY), "--solver", "penalty-explicit"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--solver", "anderso"], ("anderso", "anderson")),
        (["--tol", "0"], ("--tol", "1e-8")),
        (["--tol", "nan"], ("--tol",)),
        (["--max-iterations", "0"], ("--max-iterations",)),
        (["--time-cap", "-1"], ("--time-cap",)),
        (["--out", "/tmp/forces.txt"], ("--out", ".npz")),
        (["--json", "/no/such/dir/x.json"], ("--json",)),
    ],
)
def test_what_cannot_be_done_is_one_sentence(capsys, arguments, words):
    assert main(["solve", str(EASY), *arguments]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("palpo: ")
    assert all(word in said for word in words), said
