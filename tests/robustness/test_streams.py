"""What a network sends is a pose, or refused and without effect; what is sent out is well formed."""

import json
import math
import sys
from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palpo.app.streams import stream as streams
from palpo.app.streams.ros import FRAME, TO_ROS, Ros, along, from_ros, to_ros
from palpo.app.streams.stream import MOST_CONTACTS, MOST_HZ, Stream, moment_of
from palpo.app.streams.websocket import LISTENERS, LONGEST, MOST_MESSAGES, Websocket, decode, encode
from palpo.haptics.errors import HapticsError
from palpo.haptics.guided import LARGEST
from palpo.haptics.workspace import quaternion_matrix
from palpo.physics.exchange.snapshot import SceneState
from tests.ros import stand_in

any_float = st.floats()
anything = st.recursive(
    st.none() | st.booleans() | any_float | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=8,
)
keys = st.sampled_from(["position", "orientation", "buttons", "Position", "x"])
messages = st.dictionaries(keys, anything | st.lists(any_float, min_size=3, max_size=4), max_size=4).map(
    json.dumps
)


def state_with(forces=(), told=True):
    """A picture with bearing contacts of these forces (n, 3) [N], and an open one."""
    n = len(forces)
    state = SceneState(np.zeros((1, 3)), 7, 0.007)
    state.contact_point = np.arange(3.0 * (n + 1)).reshape(-1, 3)
    state.contact_force = np.vstack([*forces, np.zeros(3)])
    state.contact_state = np.array([1] * n + [0])
    if told:
        state.device_point, state.held_point = np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.29])
        state.device_turn, state.hand_force = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 1.0, 2.0])
    return state


# ---- what is sent


@given(st.binary(max_size=40) | st.text(max_size=40) | messages)
def test_a_message_is_a_pose_that_can_be_followed_or_a_sentence(text):
    try:
        pose = decode(text)
    except ValueError as refused:
        assert 0 < len(str(refused)) <= 100
        return
    assert np.abs(pose.position).max() <= LARGEST and np.linalg.norm(pose.orientation) == pytest.approx(1.0)


def test_a_pose_is_read_as_it_was_written_and_nothing_beside_it():
    pose = decode('{"position": [1, 2.5, -3], "orientation": [0, 0, 1, 0], "buttons": 5}')
    assert pose.position.tolist() == [1, 2.5, -3] and pose.orientation.tolist() == [0, 0, 1, 0]
    assert pose.buttons == 5
    for text in ('{"position": [1, 2]}', '{"position": [1, 2, "3"]}', '{"position": [1, 2, 1e400]}', "[]",
                 '{"position": [1, 2, 3], "set": "x"}', '{"position": [0, 0, 0], "buttons": true}',
                 '{"position": [0, 0, 0], "orientation": [0, 0, 0, 0]}', "[" * 500):  # fmt: skip
        with pytest.raises(ValueError):
            decode(text)


# ---- what is said


forces_drawn = st.lists(st.tuples(*[st.floats(-1e3, 1e3)] * 3), max_size=2 * MOST_CONTACTS)


@given(forces_drawn, st.booleans(), st.sampled_from([0.0, 0.5, 1.0]))
def test_a_reading_has_the_largest_bearing_contacts_and_is_strict_json(forces, told, felt):
    reading = moment_of(state_with(forces, told), felt, led=False)

    def refuse(constant):
        raise AssertionError(constant)

    said = json.loads(encode(reading), parse_constant=refuse)
    assert len(said["contacts"]) == min(len(forces), MOST_CONTACTS)
    sizes = sorted((float(np.linalg.norm(f)) for f in forces), reverse=True)
    assert [np.linalg.norm(c["force"]) for c in said["contacts"]] == pytest.approx(sizes[:MOST_CONTACTS])
    assert (said["position"] is None) == (not told)
    if told:
        assert said["force"] == [0, felt, 2 * felt]


class Counted(Stream):
    """Keeps what is published."""

    def __init__(self, rate):
        super().__init__(rate, "a test")
        self.kept = []

    def publish(self, reading):
        self.kept.append(reading)

    told = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@given(st.floats(1.0, MOST_HZ), st.lists(st.floats(1e-4, 0.5), min_size=1, max_size=100))
def test_no_more_readings_are_published_than_the_rate_says_and_none_are_made_up_for(rate, steps):
    stream, now = Counted(rate), 1000.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams.time, "monotonic", lambda: now)
        for step in steps:
            now += step
            due = stream.wait == 0.0
            before = len(stream.kept)
            stream.offer(state_with(), 1.0)
            assert len(stream.kept) - before == due
    assert len(stream.kept) <= sum(steps) * rate + 1


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf, 2 * MOST_HZ])
def test_a_rate_that_cannot_be_kept_is_refused(rate):
    with pytest.raises(HapticsError, match="--rate"):
        Websocket(rate)


# ---- who may connect

websockets = pytest.importorskip("websockets.sync.client", reason="needs palpo[stream]")


@pytest.fixture
def open_socket():
    with Websocket(50.0) as made:
        yield made


def connected(made, path=None, **options):
    address = made.address if path is None else made.address.rsplit("/", 1)[0] + path
    return websockets.connect(address, open_timeout=5.0, **options)


def closing(connection, *texts):
    """The code with which a connection is closed after these messages."""
    from websockets.exceptions import ConnectionClosed

    with pytest.raises(ConnectionClosed) as closed:
        for text in texts:
            connection.send(text)
        connection.recv(timeout=10.0)
    return closed.value.rcvd.code


def test_it_listens_on_this_machine_alone_unless_told_and_says_what_that_means(open_socket):
    assert open_socket.address.startswith("ws://127.0.0.1:") and len(open_socket.told) == 1
    assert "encrypted" in Websocket(50.0, "0.0.0.0").told[1]


@pytest.mark.parametrize("path", ["/", "/wrong", "", "/?token=", "/é"])
def test_without_the_token_nobody_is_let_in(open_socket, path):
    from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidURI

    with pytest.raises((InvalidHandshake, InvalidMessage, InvalidURI)):
        connected(open_socket, path).__enter__()


def test_pages_of_other_origins_are_refused_and_programs_and_named_pages_are_not(open_socket):
    from websockets.exceptions import InvalidStatus

    for origin in ("https://example.org", "null", "http://127.0.0.1"):
        with pytest.raises(InvalidStatus, match="403"):
            connected(open_socket, origin=origin).__enter__()
    with connected(open_socket):
        pass
    page = "http://localhost:3000"
    with Websocket(50.0, origins=[page]) as named, connected(named, origin=page):
        pass


def test_a_token_that_could_be_guessed_is_refused():
    for token in ("short", "with a space and more", "a/b/c/d/e/f/g/h/i/j"):
        with pytest.raises(HapticsError, match="letters"):
            Websocket(50.0, token=token)
    assert Websocket(50.0).token != Websocket(50.0).token


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        (["{}"], 1008), (["x"], 1008), ([b"\xff\xfe"], 1008), (['{"position": [NaN, 0, 0]}'], 1008),
        (['{"position": [0, 0, 0]}' + " " * LONGEST], 1009),
        (['{"position": [0, 0, 0]}'] * (5 * MOST_MESSAGES), 1008),
    ],
)  # fmt: skip
def test_what_is_no_pose_or_too_much_ends_its_own_connection_and_nothing_else(open_socket, texts, code):
    with connected(open_socket) as other, connected(open_socket) as connection:
        assert closing(connection, *texts) == code
        assert len(texts) > 1 or not open_socket.guide.leads
        open_socket.publish(moment_of(state_with(), 1.0, False))
        assert json.loads(other.recv(timeout=10.0))["tick"] == 7


def test_a_pose_reaches_the_guide_of_one_leader_and_readings_reach_all(open_socket):
    with connected(open_socket) as first, connected(open_socket) as second:
        first.send('{"position": [1, 2, 3]}')
        pose = open_socket.guide.read(10.0)
        assert pose.position.tolist() == [1, 2, 3]
        second.send('{"position": [9, 9, 9]}')
        assert open_socket.guide.read(0.1) is None
        open_socket.publish(moment_of(state_with([(0.0, 3.0, 4.0)]), 1.0, True))
        for listener in (first, second):
            said = json.loads(listener.recv(timeout=10.0))
            assert said["contacts"] == [{"point": [0, 1, 2], "force": [0, 3, 4], "state": "stick"}]
            assert said["force"] == [0, 1, 2] and said["led"]


def test_no_more_than_a_few_may_listen(open_socket):
    with ExitStack() as held:
        for _ in range(LISTENERS):
            held.enter_context(connected(open_socket))
        assert closing(held.enter_context(connected(open_socket))) == 1013


def test_who_does_not_read_misses_readings_and_nobody_waits_for_him(open_socket):
    with connected(open_socket, max_queue=1) as slow, connected(open_socket) as quick:
        reading = moment_of(state_with([(0.0, 1.0, 0.0)] * MOST_CONTACTS), 1.0, False)
        count = 4000
        for k in range(count):
            open_socket.publish(reading._replace(tick=k))
            assert json.loads(quick.recv(timeout=10.0))["tick"] == k
        seen = [json.loads(slow.recv(timeout=10.0))["tick"]]
        try:
            while True:
                seen.append(json.loads(slow.recv(timeout=0.5))["tick"])
        except TimeoutError:
            pass
        assert len(seen) < count and seen == sorted(seen)


def test_a_port_in_use_and_a_missing_library_are_sentences(open_socket, monkeypatch):
    port = int(open_socket.address.rsplit(":", 1)[1].split("/")[0])
    with pytest.raises(HapticsError, match="cannot be used"):
        Websocket(50.0, port=port).__enter__()
    monkeypatch.setitem(sys.modules, "websockets.asyncio.server", None)
    with pytest.raises(HapticsError, match="palpo\\[stream\\]"):
        Websocket(50.0).__enter__()


# ---- ROS


@given(st.tuples(*[st.floats(-1e3, 1e3)] * 3))
def test_axes_of_ros_are_turned_not_mirrored_and_there_and_back_is_nothing(vector):
    assert np.linalg.det(TO_ROS) == pytest.approx(1.0)
    assert from_ros(to_ros(vector)).tolist() == list(vector)
    size = np.linalg.norm(vector)
    if size > 1e-6:
        assert quaternion_matrix(along(vector))[:, 0] == pytest.approx(np.array(vector) / size, abs=1e-6)


def test_away_left_and_up_are_ros_s_axes():
    assert to_ros([[0, 0, -1], [-1, 0, 0], [0, 1, 0]]).tolist() == np.eye(3).tolist()


@pytest.fixture
def graph(monkeypatch):
    made = stand_in.Graph()
    for name, module in made.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


def lead(x=(0.0, 0.0, 0.0), q=(1.0, 0.0, 0.0, 0.0), frame="", stamp=0):
    """A robot's pose, ROS axes."""
    message = stand_in.PoseStamped()
    message.header.frame_id, message.header.stamp.sec = frame, stamp
    p, o = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = x
    o.w, o.x, o.y, o.z = q
    return message


def test_a_reading_becomes_messages_in_the_axes_and_units_of_ros(graph):
    with Ros(100.0, "desk") as node:
        node.publish(moment_of(state_with([(0.0, 3.0, 0.0), (0.0, 0.0, 5.0)]), 1.0, False))
        said = {topic: sent[-1] for topic, sent in graph.published.items()}
        pose, force, contacts, sizes = (
            said[f"/desk/{k}"] for k in ("pose", "force", "contacts", "contact_forces")
        )
        stamp = pose.header.stamp
        assert (pose.header.frame_id, stamp.sec, stamp.nanosec) == (FRAME, 12, 345)
        place = pose.pose.position
        assert (place.x, place.y, place.z) == (-0.3, -0.1, 0.2) and pose.pose.orientation.w == 1.0
        f = force.wrench.force
        assert (f.x, f.y, f.z) == (-2.0, 0.0, 1.0)
        assert list(sizes.data) == [5.0, 3.0] and len(contacts.poses) == 2
        q = contacts.poses[1].orientation
        # the second force is upward
        assert quaternion_matrix([q.w, q.x, q.y, q.z])[:, 0] == pytest.approx([0.0, 0.0, 1.0])
        node.publish(moment_of(state_with(told=False), 1.0, False))
        assert len(graph.published["/desk/pose"]) == 1
    assert not graph.nodes and graph.contexts[-1].state == "down"


def heard(graph, node, message, reliable=True):
    """What the guide gets of a robot's message."""
    graph.send("/palpo/lead", message, reliable)
    graph.nodes[0].executor.settle()
    return node.guide.read(0.0)


def test_a_robot_s_pose_leads_by_any_kind_of_publisher_and_in_our_axes(graph):
    with Ros(100.0) as node:
        half = math.sqrt(0.5)
        for reliable in (True, False):
            pose = heard(graph, node, lead((1.0, 2.0, 3.0), (half, 0.0, 0.0, half)), reliable)
            assert pose.position.tolist() == [-2.0, 3.0, -1.0]
            # about ROS's z is about the scene's y
            assert pose.orientation == pytest.approx([half, 0.0, half, 0.0])


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (lead(frame="map"), "frame 'map'"), (lead((np.nan, 0.0, 0.0)), "position"),
        (lead((0.0, 1e9, 0.0)), "position"), (lead(q=(0.0, 0.0, 0.0, 0.0)), "orientation"),
        (lead(q=(np.inf, 0.0, 0.0, 0.0)), "orientation"),
    ],
)  # fmt: skip
def test_what_is_no_pose_is_not_followed_and_said_once(graph, message, words):
    with Ros(100.0) as node:
        for _ in range(3):
            assert heard(graph, node, message) is None
        assert len(node.said) == 1 and words in node.said[0]
        for k in range(100):
            heard(graph, node, lead(frame=f"frame{k}"))
        assert len(node.said) <= streams.SENTENCES


def test_a_pose_that_is_older_than_the_last_is_not_followed(graph):
    with Ros(100.0) as node:
        assert [heard(graph, node, lead(stamp=s)) is not None for s in (5, 4, 5, 6, 0)] == [
            True,
            False,
            False,
            True,
            True,
        ]


def test_without_ros_or_with_a_name_that_is_none_it_is_a_sentence(graph, monkeypatch):
    with pytest.raises(HapticsError, match="--name 1 2: Invalid node name"):
        Ros(100.0, "1 2").__enter__()
    assert graph.contexts[-1].state == "down"
    monkeypatch.setitem(sys.modules, "rclpy", None)
    with pytest.raises(HapticsError, match="needs ROS 2"):
        Ros(100.0).__enter__()
