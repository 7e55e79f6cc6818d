"""Light soft bodies between joints, under forces that would throw them over were the joints not there."""

import numpy as np
import pytest

from tests.verification.small_scenes import lock_step, proceed, resting, straight

CORNERS = [(-0.01, -0.01), (0.01, -0.01), (-0.01, 0.01), (0.01, 0.01)]
TOP = (0.003, 0.0488, -0.002)

BALL_ON_POST = """
title = "light post on a soft block"
gravity = [0, 0, 0]

[[bodies]]
name = "block"
kind = "tets"
geometry = {{ kind = "block", size = [0.06, 0.02, 0.06], divisions = [6, 2, 6] }}
placement = {{ position = [0, -0.01, 0] }}
material = {{ youngs_modulus = 300e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }}
fixed = [{{ box = [[-1, -0.0201, -1], [1, -0.0199, 1]] }}]

{post}[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = {{ kind = "sphere", radius = 0.008 }}
placement = {{ position = [0.003, 0.0488, -0.002] }}
mass = 0.03

[contact]
ignore = [["post", "block"]]

[friction]
default = 0.4

[tool]
body = "ball"
[tool.hold]
orientation = true
stiffness = 20e3
damping = 10
""" + "".join(
    f"""
[[attachments]]
kind = "point"
a = {{{{ body = "post", at = [{x}, 0, {z}] }}}}
b = {{{{ body = "block", at = [{x}, 0, {z}] }}}}
"""
    for x, z in CORNERS
)

SOFT_POST = """
[[bodies]]
name = "post"
kind = "tets"
geometry = { kind = "block", size = [0.02, 0.04, 0.02], divisions = [2, 4, 2] }
placement = { position = [0, 0.02, 0] }
material = { youngs_modulus = 50e6, poisson_ratio = 0.3, density = 100, alpha = 0.0, beta = 0.0001 }
"""
RIGID_POST = """
[[bodies]]
name = "post"
kind = "rigid"
geometry = { kind = "box", size = [0.02, 0.04, 0.02] }
placement = { position = [0, 0.02, 0] }
mass = 0.0016
"""
POSTS = {"soft": SOFT_POST, "rigid": RIGID_POST}


@pytest.fixture(scope="module")
def path():
    """The ball goes 8 mm down on the post in 0.3 s."""
    return straight(TOP, np.add(TOP, (0.0, -0.008, 0.0)), 300)


@pytest.fixture(scope="module", params=POSTS)
def scene(request):
    """The text of the scene with one of the posts."""
    return BALL_ON_POST.format(post=POSTS[request.param])


@pytest.fixture(scope="module")
def exact(scene, path):
    """The force with every body at the servo's rate."""
    return proceed(lock_step(scene, kind="monolithic"), path)["force"]


@pytest.mark.parametrize("low_hz", [50, 20])
def test_a_light_post_that_is_pressed_on_by_47_newtons_stands_however_late_its_frames(
    low_hz, scene, path, exact
):
    force = proceed(lock_step(scene, f"rates.low_hz={low_hz}"), path)["force"]
    error = np.linalg.norm(force - exact, axis=1)
    # asked of frames that are a slow period late: 1% of the peak
    assert np.sqrt((error**2).mean()) < 0.01 * np.linalg.norm(exact, axis=1).max()


def places_told(log, tick):
    """(k, 3) [m] where the log says that points which joints hold were left by a tick."""
    entry = tick & (len(log.tick) - 1)
    assert log.tick[entry] == tick
    used = slice(log.used[entry])
    return log.place[entry, used][log.led[entry, used]]


def test_joined_bodies_stay_joined_in_the_low_loop_too_where_the_servo_says_that_they_are(scene, path):
    run = lock_step(scene)
    block, post = run.low.scene.members
    places = [block.body.positions(), post.body.positions()]
    pairs = [[int(np.argmin(((x - (a, 0.0, b)) ** 2).sum(axis=1))) for x in places] for a, b in CORNERS]
    apart = 0.0
    for part in np.split(path, 15):
        proceed(run, part)
        x, y = block.body.positions(), post.body.positions()
        apart = max(apart, *(float(np.linalg.norm(x[i] - y[j])) for i, j in pairs))
        if run.low.tick:
            told = places_told(run.low.link.log, run.low.tick - 1)
            held = x[[i for i, _ in pairs]]
            off = np.linalg.norm(told[:, None] - held, axis=2).min(axis=0)
            assert off.max() < 1e-12, "the servo's tick and the low loop's body are at the same time"
    # each tick's joints are exact but for how the bodies turn in it; without them the post has left by 0.6 mm
    # after half of the way
    assert apart < 1e-5


BEAM_ON_BLOCK = """
[[bodies]]
name = "post"
kind = "beam"
geometry = { kind = "line", start = [0.04, 0.03, 0], end = [0.01, 0, -0.01], elements = 6, radius = 0.001 }
material = { youngs_modulus = 1e9, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.0001 }
fixed = [{ end = "first" }]
"""


def test_a_beam_that_holds_a_soft_block_follows_its_model(path):
    text = BALL_ON_POST.format(post=BEAM_ON_BLOCK)
    text = (
        text[: text.index("[[attachments]]")]
        + """
[[attachments]]
kind = "point"
a = { body = "post", end = "last" }
b = { body = "block", at = [0.01, 0, -0.01] }
"""
    )
    text = text.replace("position = [0.003, 0.0488, -0.002]", "position = [0.003, 0.0088, -0.002]")
    way = path[:200] - (0.0, 0.04, 0.0)
    way = np.vstack([way, resting(way[-1], 100)])
    runs = [lock_step(text, kind=kind) for kind in ("krylov", "monolithic")]
    force, exact = (proceed(run, way)["force"] for run in runs)
    error = np.linalg.norm(force - exact, axis=1)
    assert np.sqrt((error**2).mean()) < 0.01 * np.linalg.norm(exact, axis=1).max()
    beam, whole = (run.low.scene.members[1].body for run in runs)
    start = lock_step(text).low.scene.members[1].body
    moved, turned = np.abs(whole.x - start.x).max(), np.abs(whole.q - start.q).max()
    assert np.abs(beam.x - whole.x).max() < 0.02 * moved
    assert np.abs(beam.q - whole.q).max() < 0.02 * turned


def test_a_joint_with_a_node_that_never_moves_holds_the_tool_there():
    text = BALL_ON_POST.format(post="").split("[[attachments]]")[0]
    text = text.replace("position = [0.003, 0.0488, -0.002]", "position = [0.01, -0.02, -0.01]")
    text = (
        text.replace('["post", "block"]', '["ball", "block"]')
        + """
[[attachments]]
kind = "point"
a = { body = "ball" }
b = { body = "block", at = [0.01, -0.02, -0.01] }
"""
    )
    place = np.array((0.01, -0.02, -0.01))
    trace = proceed(lock_step(text), straight(place, np.add(place, (0.0, 0.002, 0.0)), 100))
    # joints are exact in every tick; the hand pulls with its coupling's stiffness
    np.testing.assert_allclose(trace["tool"][:, 0], np.tile(place, (100, 1)), atol=1e-9)
    assert abs(np.linalg.norm(trace["force"][-1]) - 20e3 * 0.002) < 0.02 * 40.0
