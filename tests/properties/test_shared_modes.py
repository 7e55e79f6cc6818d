"""The modes of a frame are shared out by need: no body goes without for one that was there before it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import load_scene
from palpo.physics.systems.multirate.candidates import shared_out
from palpo.physics.systems.multirate.lock_step import LockStep

NEEDS = st.lists(st.integers(0, 300), min_size=1, max_size=6)


@given(NEEDS, st.integers(0, 600))
def test_shares_fill_the_room_and_nobody_goes_short_for_somebody_who_needs_more(needs, room):
    shares = shared_out(needs, room)
    assert sum(shares) == room
    if sum(needs) <= room:
        assert all(share >= need for share, need in zip(shares, needs, strict=True))
    short = [share for share, need in zip(shares, needs, strict=True) if share < need]
    # whoever goes short has no less than anybody else, but for what does not divide
    assert all(max(shares) <= share + 1 for share in short)


@given(NEEDS, st.integers(0, 600), st.randoms())
def test_the_order_of_the_bodies_changes_no_share_by_more_than_what_does_not_divide(needs, room, random):
    order = list(range(len(needs)))
    random.shuffle(order)
    moved = shared_out([needs[i] for i in order], room)
    shares = shared_out(needs, room)
    assert all(abs(moved[k] - shares[i]) <= 1 for k, i in enumerate(order))


BLOCK = """
[[bodies]]
name = "block{n}"
kind = "tets"
geometry = {{ kind = "block", size = ["60 mm", "20 mm", "60 mm"], divisions = [5, 2, 5] }}
placement = {{ position = ["{x} mm", "10.2 mm", 0] }}
material = {{ name = "soft-tissue", youngs_modulus = "15 kPa" }}
"""
REST = """
title = "Four blocks on a table"

[[bodies]]
name = "table"
kind = "plane"

[[bodies]]
name = "probe"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = "10 mm" }
placement = { position = [0, "60 mm", 0] }
mass = "30 g"

[tool]
body = "probe"
"""


def test_four_bodies_that_need_more_than_there_is_room_get_a_quarter_each(tmp_path):
    (tmp_path / "blocks.toml").write_text(
        REST + "".join(BLOCK.format(n=n, x=x) for n, x in enumerate((-120, -40, 40, 120)))
    )
    scene = build_scene(load_scene(str(tmp_path / "blocks.toml")))
    together = scene.loops(apart=False)
    scene.loops = lambda apart: together  # type: ignore[method-assign]
    lock = LockStep(scene, "krylov")
    room = lock.scene.capacity.modes
    for member, reduction in zip(lock.scene.members, lock.low.reductions, strict=True):
        assert reduction.need(member.count) > room // 4, "or the test shows nothing"
    lock.run(np.tile([0.0, 0.06, 0.0], (4 * lock.ratio, 1)))
    frame, slot = lock.high.link.frame, lock.low._published
    counts = np.diff(frame.mode_body[slot, : len(lock.scene.members) + 1])
    lock.close()
    assert counts.sum() <= room
    assert counts.min() >= room // 4 - 1
