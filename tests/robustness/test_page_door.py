"""Who may open the page of `palpo serve`, and what a page may say: by plain requests, without a browser."""

import asyncio
import contextlib
import math
import re
import socket
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("viser", reason="a page needs viser: palpo[serve]")

from websockets.exceptions import ConnectionClosed, InvalidStatus

from palpo.app.streams.door import foreign, token_of
from palpo.app.web.heard import LARGEST, LETTERS, LONGEST, MOST_MESSAGES, heed
from palpo.app.web.panel import SPEEDS, PagePanel, _head, _said
from palpo.app.web.server import Server
from palpo.app.web.window import REACH, PageWindow
from palpo.haptics.errors import HapticsError
from palpo.haptics.guided import pose_of
from palpo.physics.exchange.snapshot import Drawable, SceneState, make_geometry
from palpo.render.camera import Camera
from palpo.render.controls import Controls
from palpo.render.gl import RenderUnavailable
from palpo.render.panel_state import Light, PanelState, Timeline
from palpo.render.requests import Request
from tests.robustness.pages import CAMERA, asked, drag, open_page, packed

PRESS = {"type": "GuiUpdateMessage", "uuid": "x", "updates": {"value": True}}
CORNERS = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.0, 0.1, 0.0]])


@pytest.fixture(scope="module")
def server():
    made = Server("127.0.0.1", 0)
    yield made
    made.stop()


@pytest.fixture
def shown(server):
    """A window whose scene's tool pages may lead, and its controls."""
    window = PageWindow(server)
    panel = PagePanel(window)
    state = SceneState(CORNERS.copy(), held_point=np.zeros(3), device_point=np.zeros(3))
    window.show(
        make_geometry([Drawable("tool", "surface", 0, 3, np.array([[0, 1, 2]]))], CORNERS), state, "tool"
    )
    controls = Controls(Camera(), drives_tool=True)
    controls.take_hold(np.zeros(3), (1.0, 0.0, 0.0, 0.0))

    def frames(until, patience=5.0):
        end = time.monotonic() + patience
        while not until() and time.monotonic() < end:
            window.frame(state, controls, lambda: panel.draw(PanelState("test", device="page")))
        assert until()

    return window, controls, frames


def until(true, patience=10.0):
    """Wait for it."""
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


# ---- who may come in


def refusals(server, token):
    """What this path says, asked for as a page and as a websocket."""
    status, body, _ = asked(server, f"/{token}/")
    with pytest.raises(InvalidStatus) as refused:
        open_page(server, token)
    return status, body, refused.value.response.status_code


@pytest.mark.parametrize("token", ["", "x", "../", "%00", "a" * 4000])
def test_without_the_token_nothing_is_said(server, token):
    status, body, upgraded = refusals(server, token)
    assert status == upgraded == 403 and len(body) < 100


def test_a_token_that_is_wrong_by_one_letter_or_longer_is_none(server):
    token = server.tokens["lead"]
    other = token[:-1] + ("a" if token[-1] != "a" else "b")
    for wrong in (other, token + "a", token[:-1], token.upper()):
        assert refusals(server, wrong)[0::2] == (403, 403)


def test_with_a_token_it_is_the_page_that_loads_nothing_from_elsewhere(server):
    for role in ("lead", "watch"):
        status, body, headers = asked(server, f"/{server.tokens[role]}/")
        assert status == 200 and b"<!doctype html>" in body[:100].lower()
        policy = headers["Content-Security-Policy"]
        assert re.findall(r"\b(?:ws|http)s?://\S+", policy) == [f"ws://127.0.0.1:{server.port}"]
        assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
        assert asked(server, f"/{server.tokens[role]}/../../../../etc/passwd")[0] == 404


@pytest.mark.parametrize(
    "host", ["palpo.example", "127.0.0.1.palpo.example:80", "localhost.palpo.example", ""]
)
def test_another_name_of_this_machine_is_refused_also_with_the_token(server, host):
    """DNS rebinding: the page of another name that leads here."""
    assert asked(server, f"/{server.tokens['lead']}/", Host=host)[0] == 403


def test_a_page_of_another_origin_is_refused_also_with_the_token(server):
    port, path = server.port, f"/{server.tokens['lead']}/"
    for origin in ("http://palpo.example", f"https://127.0.0.1:{port}", "http://127.0.0.1:1", "null", ""):
        assert asked(server, path, Origin=origin)[0] == 403
        with pytest.raises(InvalidStatus):
            open_page(server, Origin=origin)
    assert asked(server, path, Origin=f"http://127.0.0.1:{port}")[0] == 200
    open_page(server, Origin=f"http://127.0.0.1:{port}").close()


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40))
def test_no_name_of_a_domain_is_one_of_this_machine(name):
    assert foreign({"Host": "x" + name + ".example"}) != ""


def test_a_token_that_could_be_guessed_is_refused_and_each_run_makes_others(monkeypatch):
    monkeypatch.setenv("PALPO_SERVE_TOKEN", "letmein")
    with pytest.raises(HapticsError, match="PALPO_SERVE_TOKEN: give 16 or more"):
        Server("127.0.0.1", 0)
    monkeypatch.delenv("PALPO_SERVE_TOKEN")
    assert len({token_of("PALPO_SERVE_TOKEN") for _ in range(100)}) == 100


def test_without_viser_or_behind_one_that_serves_in_another_way_nothing_is_served(monkeypatch):
    monkeypatch.setattr(Server, "_serve", lambda self, server: server.serve)
    with pytest.raises(HapticsError, match="begins in an unknown way"):
        Server("127.0.0.1", 0)
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(RenderUnavailable, match=r"palpo\[serve\]"):
        Server("127.0.0.1", 0)


def test_a_page_that_is_silent_is_let_go(server):
    """It answers no ping, as one whose network is gone."""
    import viser

    before = server.leaders()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as page:
        page.sendall(
            f"GET /{server.tokens['lead']} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n"
            f"Sec-WebSocket-Protocol: viser-v{viser.__version__}\r\n\r\n".encode()
        )
        assert page.recv(12) == b"HTTP/1.1 101"
        until(lambda: server.leaders() - before)
        until(lambda: not server.leaders() - before)


# ---- what may be said

bad = [
    pytest.param("a text", id="a text"),
    pytest.param(b"", id="nothing"),
    pytest.param(b"\xc1" * 40, id="no message"),
    pytest.param(b"\x91" * 4000, id="nested"),
    pytest.param(packed([1, 2]), id="a list"),
    pytest.param(packed({"type": 3}), id="no type"),
    pytest.param(packed(CAMERA | {"fov": math.nan}), id="not finite"),
    pytest.param(packed(CAMERA | {"position": [0.0, 1e300, 0.0]}), id="far away"),
    pytest.param(packed(CAMERA | {"position": [0.0, 1.0]}), id="short"),
    pytest.param(packed(CAMERA | {"position": "abc"}), id="a word"),
    pytest.param(packed(CAMERA | {"more": 1}), id="another key"),
    pytest.param(packed(drag("jump", 0.5, 0.5)), id="no phase"),
    pytest.param(packed(drag("start", 0.5, math.inf)), id="an infinite drag"),
    pytest.param(packed(PRESS | {"updates": {"update_cb": []}}), id="a callback"),
    pytest.param(packed(PRESS | {"uuid": "x" * (LETTERS + 1)}), id="long"),
    pytest.param(packed(CAMERA) + b"\x00" * LONGEST, id="too long"),
]  # fmt: skip


@pytest.mark.parametrize("message", bad)
def test_what_is_no_message_ends_its_connection_and_nothing_else(server, shown, message):
    _, controls, frames = shown
    with open_page(server) as good, open_page(server) as page:
        page.send(message)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                page.recv(timeout=5)
        assert closed.value.rcvd.code in (1008, 1009)
        # the scene goes on, and a page that behaves leads it
        good.send(packed(CAMERA))
        good.send(packed(drag("start", 0.5, 0.5)))
        good.send(packed(drag("update", 0.6, 0.5)))
        frames(lambda: controls.hand.position[0] > 0.0)


def test_too_many_messages_end_a_connection(server):
    with open_page(server) as page, pytest.raises(ConnectionClosed) as closed:
        for _ in range(3 * MOST_MESSAGES):
            page.send(packed(CAMERA))
        while True:
            page.recv(timeout=5)
    assert closed.value.rcvd.code == 1008


scalars = st.none() | st.booleans() | st.floats() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=9)
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=8)


@given(
    st.sampled_from([CAMERA, drag("update", 0.5, 0.5), {"type": "ShareUrlRequest"}]),
    st.dictionaries(st.sampled_from([*CAMERA, *drag("end", 0, 0), "x"]), anything, max_size=2),
    st.booleans(),
)
def test_a_message_is_of_finite_numbers_or_is_not_heard(message, news, leads):
    try:
        heard = heed(packed(message | news), leads)
    except ValueError as refused:
        assert 0 < len(str(refused)) <= 100
        return
    said = message | news
    if heard:
        assert said["type"] == "ViewerCameraMessage" or (leads and said["type"] == "SceneNodeDragMessage")
        flat = np.hstack([v for v in said.values() if isinstance(v, float | list)])
        assert np.isfinite(flat).all() and np.abs(flat).max() <= LARGEST


@given(st.binary(max_size=60) | st.text(max_size=20))
def test_noise_is_never_heard(raw):
    with contextlib.suppress(ValueError):
        assert not heed(raw, True)


def test_viser_s_own_tunnel_and_downloads_are_passed_over():
    for kind in ("ShareUrlRequest", "GetRenderResponseMessage", "FileTransferStartUpload"):
        assert not heed(packed({"type": kind}), True)


def test_who_looks_on_moves_and_presses_nothing():
    assert heed(packed(CAMERA), False)
    for message in (drag("start", 0.5, 0.5), PRESS):
        assert heed(packed(message), True) and not heed(packed(message), False)


def test_a_page_chooses_what_is_offered_and_nothing_else(shown):
    """Of scenes and speeds a page could name any: a file of this machine, or no number."""
    window, *_ = shown
    panel = PagePanel(window)
    state = PanelState(
        "wire", scenes=("probe", "wire"), timeline=Timeline(1.0, 0.0, False, 1.0, *np.zeros((2, 1)))
    )
    panel.draw(state)
    event = SimpleNamespace(client_id=0)
    for offered, kind, words in ((state.scenes, "scene", "/etc/passwd"), (SPEEDS, "speed", "fast")):
        panel._choose(event, kind, words, offered)
        assert panel.draw(state) == []
        panel._choose(event, kind, offered[0], offered)
        assert panel.draw(state) == [Request(kind, value=offered[0])]


def test_what_the_panel_shows_is_text_and_no_page():
    shown = PanelState("<script>", messages=("<img src=x>",), light=Light("<b>", "<i>"))
    for words in (_head(shown), _said(shown)):
        assert not re.search("<(script|img|i)[ >]", words)


# ---- what a drag does

numbers = st.floats(-LARGEST, LARGEST)
vectors = st.tuples(numbers, numbers, numbers).map(np.array)
moves = st.tuples(
    vectors, vectors, numbers, numbers, numbers, st.sampled_from([None, "shift", "cmd/ctrl"])
)  # fmt: skip


@given(st.lists(moves, max_size=20))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wherever_pages_look_from_and_drag_to_the_hand_stays_near_the_scene(shown, moves):
    window, controls, _ = shown
    controls.take_hold(np.zeros(3), (1.0, 0.0, 0.0, 0.0))
    for eye, target, fov, x, y, keys in moves:
        view = SimpleNamespace(position=eye, look_at=target, fov=fov, image_width=1000, image_height=800)
        event = SimpleNamespace(
            client=SimpleNamespace(camera=view),
            client_id=0,
            phase="update",
            modifier=keys,
            end_screen_pos=(x, y),
        )
        asyncio.run(window._hear(event))
        with np.errstate(all="ignore"):
            window._drag(window._drags.popleft(), controls)
        pose_of(controls.hand.position, controls.hand.orientation)
        assert np.abs(controls.hand.position).max() <= (REACH + 1.0) / window.scale


def test_a_drag_moves_the_hand_as_far_as_the_pointer_in_the_page_s_own_view(server, shown):
    window, controls, frames = shown
    with open_page(server) as page:
        page.send(packed(CAMERA))
        frames(lambda: window.placed)
        page.send(packed(CAMERA | {"position": [0.0, 0.0, 4.0]}))
        page.send(packed(drag("start", 0.5, 0.5)))
        frames(lambda: controls.hand.grip)
        page.send(packed(drag("update", 0.6, 0.25)))
        frames(lambda: controls.hand.position[0] > 0.0)
        # the height of what a camera of 0.5 rad shows at the distance of 4 of the page's lengths
        height = 2 * 4.0 / window.scale * math.tan(0.25)
        assert controls.hand.position == pytest.approx([0.1 * height * 1000 / 800, 0.25 * height, 0.0])
        page.send(packed(drag("end", 0.6, 0.25)))
        frames(lambda: not controls.hand.grip)


def test_one_page_holds_the_tool_and_when_it_leaves_the_hand_lets_go(server, shown):
    window, controls, frames = shown
    told = []
    controls.follow = told.append
    with open_page(server) as first, open_page(server) as second:
        for page in (first, second):
            page.send(packed(CAMERA))
        first.send(packed(drag("start", 0.5, 0.5)))
        frames(lambda: controls.hand.grip)
        second.send(packed(drag("start", 0.5, 0.5)))
        second.send(packed(drag("update", 0.9, 0.9)))
        frames(lambda: len(told) > 20)
        assert controls.hand.position == pytest.approx(0.0) and window.attended
        first.close()
        frames(lambda: not window.attended and not controls.hand.grip)
        told.clear()
        end = time.monotonic() + 0.3
        frames(lambda: time.monotonic() > end)
        assert not told and not controls.hand.grip
        # and another takes it by dragging it
        second.send(packed(drag("update", 0.5, 0.5)))
        second.send(packed(drag("update", 0.6, 0.5)))
        frames(lambda: window.attended and controls.hand.grip and bool(told))
