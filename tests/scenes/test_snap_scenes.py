"""Whole runs of snap scenes: what is felt and shown, in lock-step and in threads, and repeated exactly."""

import time
from dataclasses import fields, replace

import meshio
import numpy as np
import pytest
from numpy.lib.recfunctions import structured_to_unstructured

from palpo.app.cli.progress import Silent
from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.live import change_text, changed, device_values, live_keys
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session, run
from palpo.app.systems.snap.build import (
    build_model,
    field_of,
    matrices_of,
    sampled_field,
    settings_of,
    shipped_networks,
)
from palpo.app.systems.snap.connector import connector_of
from palpo.config.load import load_scene, parse_scene
from palpo.config.schema import connector as schema
from palpo.config.schema.snap import LearnedDistanceSpec
from palpo.haptics.control import tick_count
from palpo.haptics.device_spec import DEVICES
from palpo.haptics.recording import read_recording
from palpo.physics.collision.distance_errors import distance_errors, shell_points
from palpo.physics.collision.distance_field import EXACT, GRID, LEARNED, exact_field
from palpo.physics.collision.io import read_network
from palpo.physics.exchange.snap_frame import GAINS
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.connectors.registry import KINDS, generate
from tests.scenes.runs import columns_of, force

SCENES = {"snap": "two-prong", "snap-lan": "lan", "snap-cap": "cap", "snap-buckle": "buckle"}
# Against the ramps of the hooks within a third of a second, on the coarser mesh.
PRESSED = (
    "connector.mesh=coarse",
    "safety.fade_in=0.05",
    "device.path=[[0, 0, 0.04835, 0], [0.3, 0, 0.043, 0], [0.6, 0, 0.043, 0]]",
)
PRESS = Options("snap", PRESSED, device="mock", lock_step=True, baseline=False)
pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_clicks_shut_under_the_simulated_hand_holds_against_its_pull_and_spares_the_device(
    scene, tmp_path
):
    done = run(Options(scene, device="mock", lock_step=True, record=tmp_path / "run.h5"))
    assert done.status == FINISHED
    spec, found, c = load_scene(scene), done.result["system"], columns_of(tmp_path / "run.h5")
    limit, scale = DEVICES["touch"].max_force, spec.workspace.force_scale
    assert found["latched"] and found["pull_out_N"] > 0.2 * found["click_peak_N"]
    # felt: far above the device's friction, and yet never cut off by its limit
    assert 1.5 < scale * found["click_peak_N"] < limit
    assert np.linalg.norm(force(c, "sent"), axis=1).max() < limit
    # and at once: the force falls from its peak to the friction of hooks that slide, up to 17% (the buckle's
    # reference), to nothing, or pulls
    assert found["click_drop_N"] > 0.8 * found["click_peak_N"]
    # without contact before, and again behind the hooks
    assert not c["contacts"][:600].any()
    # a count of the encoder is a jump of the hand, whose damping force lasts some milliseconds
    assert np.median(np.abs(force(c)[-100:]).max(axis=1)) < 0.05 * found["click_peak_N"]


@pytest.mark.parametrize("scene", SCENES)
def test_the_hand_of_a_scene_starts_where_its_plug_does_and_ends_where_that_is_latched(scene):
    spec = load_scene(scene)
    connector, path = connector_of(spec), np.array(spec.device.path)[:, 1:]
    # the hold answers a hundredth of a millimetre with less than a newton
    np.testing.assert_allclose(path[0], connector.rest_position, atol=1e-5)
    np.testing.assert_allclose(path[-1], path[0] + connector.stroke * connector.push, atol=1e-5)
    assert tuple(path[0]) == tuple(path[1]) == spec.workspace.offset


def test_two_runs_in_lock_step_are_one_and_a_replay_is_the_run_bit_for_bit(tmp_path):
    paths = [tmp_path / "one.h5", tmp_path / "two.h5"]
    for path in paths:
        assert run(replace(PRESS, record=path)).status == FINISHED
    one, two = (columns_of(path) for path in paths)
    assert np.abs(force(one)).max() > 5.0
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert replay(paths[0]).result["replay"]["equal"]


def test_a_run_in_threads_with_changes_and_a_pause_is_repeated_bit_for_bit(tmp_path):
    session = Session(replace(PRESS, lock_step=False, duration=0.5, record=tmp_path / "run.h5"))
    waiting = [
        (150, lambda: session.change("friction.default", 0.5)),
        (200, lambda: session.pause(True)),
        (250, lambda: session.pause(False)),
        (300, lambda: session.change("admittance.stiffness", 2e4)),
    ]

    def watch(_state, _fresh):
        if waiting and tick_count(session.rig.servo) >= waiting[0][0]:
            waiting.pop(0)[1]()
        time.sleep(1e-3)

    session.prepare()
    assert session.run(watch).status == FINISHED and not waiting
    again = replay(tmp_path / "run.h5")
    assert again.result["replay"]["equal"], again.result["exit_reason"]


def test_a_change_of_friction_reaches_the_servo_with_the_frame_of_its_low_step_and_not_before(tmp_path):
    session = Session(replace(PRESS, record=tmp_path / "run.h5"))
    session.prepare()
    steps, latest = iter(range(10**6)), session.visual.latest

    def look():
        if next(steps) == 15:
            session.change("friction.default", 0.0)
        return latest()

    session.visual.latest = look
    assert session.run().status == FINISHED
    changes = read_recording(tmp_path / "run.h5").changes
    step = changes[0][0]
    # it goes over in a tenth of a second, in as many slow steps as fall into it
    assert [k for k, _ in changes] == list(range(step, step + round(0.1 / (session.rig.ratio * 1e-3))))
    assert all(text.startswith("friction.default=") for _, text in changes)
    assert changes[-1][1] == "friction.default=0.0"
    run(replace(PRESS, record=tmp_path / "plain.h5"))
    c, plain = columns_of(tmp_path / "run.h5"), columns_of(tmp_path / "plain.h5")
    first = step * session.rig.ratio
    assert c["frame"][first - 1] + 1 == c["frame"][first]
    same = (force(c) == force(plain)).all(axis=1)
    assert same[:first].all() and not same[first]
    # on ramps of 45 degrees: tan(45 - atan mu) for the same spread, once the hand has given way
    # over ticks enough that the leaps at counts of the encoder do not matter
    with_less, with_all = (np.median(np.abs(force(columns)[500:600, 1])) for columns in (c, plain))
    assert with_less < 0.9 * with_all


def test_a_press_leaps_where_the_encoder_counts_alone_and_by_what_the_hold_gives_for_a_count(tmp_path):
    """A target that leaps by d in a step T is followed with h = D (V - W) + K eh, W = d / T
    (palpo.physics.bodies.admittance): a plug that is free takes Mh^-1 (D + K T / 2) W of it, one that is
    stuck nothing."""
    one_step = replace(PRESS, overrides=(*PRESSED, "integration.substeps=1"))
    session = Session(replace(one_step, record=tmp_path / "run.h5"))
    session.prepare()
    session.run()
    plug = session.rig.side.snap.plug.model
    follow, heavy = plug.follow[1, 1], 2.0 * plug.mass[1, 1] / plug.step
    c, pressed = columns_of(tmp_path / "run.h5"), slice(310, None)
    leaps, counts = (np.diff(values[pressed]) for values in (force(c)[:, 1], c["py"]))
    at = np.flatnonzero(counts)
    assert at.size > 0
    stuck = -follow * counts[at] / plug.step
    free = heavy / (heavy + follow) * stuck
    assert (leaps[at] * np.sign(stuck) > np.abs(free)).all()
    assert (np.abs(leaps[at]) < np.abs(stuck)).all()
    # what a leap has stirred dies away in a few ticks
    still = np.array([not counts[max(0, k - 8) : k + 1].any() for k in range(counts.size)])
    assert still.sum() > 100
    assert np.abs(leaps[still]).max() < 0.1 * np.abs(free).min()


@pytest.mark.parametrize("scene", ["snap", "snap-lan"])
def test_every_live_key_reaches_the_servo(scene):
    spec = load_scene(scene)
    connector = connector_of(spec)

    def told(spec):
        values = structured_to_unstructured(settings_of(spec, connector))[0]
        return np.append(values, device_values(spec)), matrices_of(spec, connector)

    before = told(spec)
    assert before[1].shape == (GAINS, 6, 6)
    for live in live_keys(spec):
        value: float | str = 0.3 * live.lower + 0.7 * live.upper
        if live.choices:
            value = next(choice for choice in live.choices if choice != live.value)
        else:
            assert live.lower <= live.value <= live.upper, live.key
        after = changed(spec, change_text(spec, live.key, value))
        values, gains = told(after)
        moved = (~np.isclose(values, before[0], rtol=1e-12, atol=0.0, equal_nan=True)).sum()
        held = np.allclose(gains, before[1], rtol=1e-12)
        assert (moved, held) == ((0, False) if live.key.startswith("admittance") else (1, True)), live.key


def test_a_misaligned_plug_stands_off_the_hand_by_the_error_and_is_pushed_back_by_the_hooks(tmp_path):
    off = ("misalignment.position=[0.001, 0, 0]",)
    run(replace(PRESS, overrides=(*PRESSED, *off), record=tmp_path / "run.h5"))
    c = columns_of(tmp_path / "run.h5")
    assert (c["held_x"] - c["px"])[0] == 1e-3
    # they push it to the middle, and the hand, which holds it on a spring, feels that
    assert force(c)[-60, 0] < -0.5


def test_on_a_rail_a_hand_that_goes_aside_moves_and_feels_nothing_there(tmp_path):
    aside = "device.path=[[0, 0, 0.04835, 0], [0.3, 0.004, 0.043, 0.002], [0.5, 0.004, 0.043, 0.002]]"
    run(replace(PRESS, overrides=(*PRESSED, aside, "admittance.rail=20"), record=tmp_path / "run.h5"))
    c = columns_of(tmp_path / "run.h5")
    assert np.abs(c["px"]).max() > 3e-3 and force(c)[:, 1].max() > 5.0
    assert not force(c)[:, [0, 2]].any()
    assert max(np.abs(c["held_x"]).max(), np.abs(c["held_z"]).max()) < 1e-4


def test_the_picture_has_the_deflection_of_the_prongs_and_curves_of_energy_and_force():
    session = Session(PRESS)
    session.prepare()
    session.run()
    state, _ = session.visual.latest()
    left, right, plug = session.visual.geometry.drawables
    rest = session.visual.geometry.rest
    moved = np.linalg.norm(state.vertices - rest, axis=1)
    for prong in (left, right):
        np.testing.assert_allclose(state.scalar[prong.span], 1e3 * moved[prong.span])
        assert not moved[prong.span][prong.fixed].any() and moved[prong.span].max() > 2e-4
    assert (
        np.ptp(moved[plug.span]) < 1e-4 < moved[plug.span].max() and np.isnan(state.scalar[plug.span]).all()
    )
    forces, energy = session.rig.curves()
    assert (np.diff(energy.seconds) > 0.0).all()
    assert energy.series["elastic"].max() > max(0.2, 100 * energy.series["coupling"].max())
    # at rest the floor bears what the hand pushes with
    assert forces.series["floor"][-5] == pytest.approx(forces.series["hold"][-5], rel=0.05)


# ---- distances, bases, connectors


@pytest.mark.portable
@pytest.mark.parametrize("scene", SCENES)
def test_a_scenes_distance_is_exact_and_a_grid_is_nearer_than_the_network(scene):
    """On points around the plug that neither has seen."""
    spec = load_scene(scene)
    connector = connector_of(spec)
    grid, learned = (
        field_of(load_scene(scene, [f"distance.kind={kind}"]), connector) for kind in ("grid", "learned")
    )
    assert (field_of(spec, connector).kind, grid.kind, learned.kind) == (EXACT, GRID, LEARNED)
    shell = 0.5 * learned.near.band
    points = shell_points(connector.plug, shell, 20_000, np.random.default_rng(1))
    exact = exact_field(connector.plug)
    near, far = (distance_errors(field, exact, points, shell) for field in (grid, learned))
    assert near.percentile_99 < far.percentile_99
    assert near.rms < far.rms and near.normal_rms < far.normal_rms


def test_a_grid_is_computed_once_and_found_again_and_a_coarser_one_is_another(monkeypatch):
    plug = generate("lan").plug
    first = sampled_field(plug, 1e-3, 1e-3)
    with monkeypatch.context() as patch:
        patch.setattr(
            "palpo.physics.collision.distance_field.signed_distance", lambda *_: pytest.fail("again")
        )
        patch.setattr("palpo.physics.collision.distance_field._near_band", lambda *_: first.near)
        again = sampled_field(plug, 1e-3, 1e-3)
        with pytest.raises(pytest.fail.Exception):
            sampled_field(plug, 1e-3, 1.1e-3)
    assert np.array_equal(first.grid.values, again.grid.values)


@pytest.mark.portable
def test_each_plug_has_its_network_with_errors_far_below_its_interference():
    plugs = {kind: generate(kind) for kind in KINDS}
    assert sorted(path.stem for path in shipped_networks()) == sorted(KINDS)
    for path in shipped_networks():
        _, errors = read_network(path, plugs[path.stem].plug)
        assert errors.percentile_99 < LearnedDistanceSpec(kind="learned").accuracy
        assert errors.percentile_99 < 0.3 * plugs[path.stem].interference


def test_weights_of_another_plug_and_weights_that_are_not_good_enough_are_refused_in_one_sentence():
    weights = {path.stem: path for path in shipped_networks()}
    foreign = load_scene("snap", [f'distance={{kind="learned", weights="{weights["lan"]}"}}'])
    with pytest.raises(InputError, match=r"lan\.npz: the network was trained on another mesh than this one"):
        field_of(foreign, connector_of(foreign))
    own = f'distance={{kind="learned", weights="{weights["two-prong"]}", accuracy="1 um"}}'
    strict = load_scene("snap", [own])
    with pytest.raises(InputError, match=r"two-prong\.npz: the learned distance errs by .* 1e-06 m is"):
        field_of(strict, connector_of(strict))


def test_bases_are_computed_once_and_found_again_to_the_last_bit():
    spec = load_scene(
        "snap", ["connector.mesh=coarse", "model={segments=2, orders=[7, 9]}", 'distance={kind="exact"}']
    )
    first, again = build_model(spec, Silent()), build_model(spec, Silent())
    assert first.orders == [[7, 9], [7, 9]]
    for one, two in zip(first.prongs, again.prongs, strict=True):
        assert np.array_equal(one.model.compliance, two.model.compliance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("palpo.app.systems.snap.build.reduced_bases", lambda *_: pytest.fail("computed again"))
        build_model(spec, Silent())
        stiffer = load_scene("snap", [*spec.origin.overrides, "damping.beta=2e-5"])
        with pytest.raises(pytest.fail.Exception):
            build_model(stiffer, Silent())


@pytest.mark.parametrize("kind", KINDS)
def test_a_scene_may_give_every_dimension_of_a_generator(kind):
    names = {"two-prong": "TwoProng", "lan": "Lan", "cap": "Cap", "buckle": "Buckle"}
    keys = set(getattr(schema, f"{names[kind]}Connector").model_fields) - {"kind", "mesh"}
    assert keys == {field.name for field in fields(KINDS[kind].dimensions)}


def test_a_pair_from_files_is_the_connector_that_was_written(tmp_path):
    own = generate("two-prong")
    for i, prong in enumerate(own.prongs):
        meshio.write_points_cells(tmp_path / f"{i}.vtu", 1e3 * prong.mesh.nodes, {"tetra": prong.mesh.tets})
    start = own.plug_at(0.0)
    meshio.write_points_cells(tmp_path / "plug.obj", start.vertices, {"triangle": start.triangles})
    prongs = ", ".join(
        f'{{kind="file", path="{i}.vtu", scale=0.001, clamped=[{{nodes={p.clamped.tolist()}}}], '
        f"contact=[{{nodes={p.contact.tolist()}}}]}}"
        for i, p in enumerate(own.prongs)
    )
    text = f"""
        system = "snap"
        title = "A pair of one's own"
        material = {{ youngs_modulus = "164.76 MPa", poisson_ratio = 0.35, density = 1040 }}
        admittance = {{ stiffness = "37.55 N/mm" }}
        [connector]
        kind = "files"
        stroke = {own.stroke}
        plug = {{ kind = "file", path = "plug.obj" }}
        prongs = [{prongs}]
    """
    read = connector_of(parse_scene(text, tmp_path / "pair.toml"))
    np.testing.assert_allclose(read.rest_position, own.rest_position, atol=1e-6)
    np.testing.assert_allclose(read.plug.vertices, own.plug.vertices, atol=1e-6)
    for one, two in zip(read.prongs, own.prongs, strict=True):
        np.testing.assert_allclose(one.mesh.nodes, two.mesh.nodes, atol=1e-12)
        assert np.array_equal(one.clamped, two.clamped) and np.array_equal(one.contact, two.contact)
        known = {tuple(sorted(t)) for t in one.contact_triangles.tolist()}
        assert {tuple(sorted(t)) for t in two.contact_triangles.tolist()} <= known
