"""Laws of a run that others hear and lead: by a websocket and by ROS, from the first pose to silence."""

import json
import sys
import threading
import time

import numpy as np
import pytest

from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.app.streams.ros import Ros, to_ros
from palpo.app.streams.websocket import Websocket
from palpo.haptics.control import is_frozen, tick_count
from palpo.haptics.device import MAILBOX, make_virtual_device
from palpo.haptics.drain import drain_rows
from palpo.haptics.errors import HapticsError
from palpo.haptics.guided import SPEED, Guide, GuidedThread, SentPose
from palpo.haptics.limits import GENTLE, make_limits
from palpo.haptics.row import NAMES
from tests.ros import stand_in
from tests.servo.wall import make_wall

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
STIFFNESS, MOST = 300.0, 3.3
X, SENT = NAMES.index("device_px"), NAMES.index("sent_x")


def wait_until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(1e-3)


def test_while_nobody_leads_the_force_is_off_and_each_beginning_is_without_a_jump():
    """Pressed into a wall, in silence, and led again from a place far from the first."""
    device = make_virtual_device([[0.0, 0.0, 0.0]], source=MAILBOX)
    limits = make_limits(MOST, fades=GENTLE, hand_speed=np.inf)
    wall, guide = make_wall(device, STIFFNESS, limits=limits), Guide("a test")
    servo = wall.servo
    with GuidedThread(servo, guide):
        wait_until(lambda: is_frozen(servo))
        begun = int(tick_count(servo))
        for origin in (5.0, -3.0):
            for k in range(60):
                guide.put(SentPose(np.array([origin + 1e-3 * min(k, 10), 0.0, 0.0]), UPRIGHT))
                time.sleep(0.01)
            assert servo.sent[0] < 0.0, "the wall is felt"
            wait_until(lambda: is_frozen(servo))
            assert not servo.sent.any()
    assert begun < 100, "nothing moves before the first pose"
    rows = drain_rows(servo)
    # as far as two strokes of 10 mm lead, less what the wall pushes back
    assert 0.01 < rows[:, X].max() < 0.02
    assert np.abs(np.diff(rows[:, X])).max() <= 1.1 * SPEED * servo.dt
    assert np.abs(np.diff(rows[:, SENT])).max() <= limits.max_step + 1e-9


def test_a_pose_has_nobody_to_come_from_but_a_stream():
    with pytest.raises(HapticsError, match="palpo stream or palpo ros"):
        Session(Options("probe", device="led"))


class Robot:
    """Hears where the hand is, and leads it down into the block of `probe` by 12 mm; then it is silent."""

    def __init__(self):
        self.heard, self.thread = [], threading.Thread(target=self.work, daemon=True)
        self.failed = None

    def work(self):
        try:
            self.lead()
        except BaseException as error:
            self.failed = error

    def paths(self, first):
        """The places that it sends, 100 a second."""
        for k in range(300):
            yield first - np.array([0.0, 12e-3 * min(1.0, k / 150), 0.0])


class Client(Robot):
    """By the websocket."""

    def __init__(self, address):
        super().__init__()
        self.address = address

    def lead(self):
        connect = pytest.importorskip("websockets.sync.client", reason="needs palpo[stream]").connect
        from websockets.exceptions import ConnectionClosed

        with connect(self.address) as connection:
            while (said := json.loads(connection.recv(timeout=60.0)))["position"] is None:
                continue
            for place in self.paths(np.array(said["position"])):
                connection.send(json.dumps({"position": place.tolist()}))
                self.heard.append(json.loads(connection.recv(timeout=60.0)))
            try:
                while True:
                    self.heard.append(json.loads(connection.recv(timeout=60.0)))
            except ConnectionClosed:
                return


class Arm(Robot):
    """By ROS."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph

    def lead(self):
        published = self.graph.published
        wait_until(lambda: "/palpo/contact_forces" in published)
        # its own frame is elsewhere
        for place in self.paths(np.array([1.0, 2.0, 3.0])):
            message = stand_in.PoseStamped()
            p = message.pose.position
            p.x, p.y, p.z = map(float, to_ros(place))
            self.graph.send("/palpo/lead", message)
            time.sleep(0.01)


def led(stream, robot):
    """A run of `probe` under a robot, which is ended once the robot is silent and the force is off."""
    session = Session(Options("probe", device="led", stream=stream, baseline=False))
    session.prepare()
    largest = [0.0]

    def watch(state, fresh):
        time.sleep(2e-3)
        servo = session.rig.servo
        largest[0] = max(largest[0], float(np.linalg.norm(servo.sent)))
        if not robot.thread.is_alive() or (stream.guide._when > 0 and not stream.guide.leads):
            assert robot.failed is None, robot.failed
            if is_frozen(servo) and largest[0] > 0.0:
                assert not servo.sent.any()
                session.end()

    robot.thread.start()
    done = session.run(watch)
    return done, largest[0]


def test_a_program_hears_and_leads_a_run_by_the_websocket():
    pytest.importorskip("websockets", reason="needs palpo[stream]")
    with Websocket(100.0) as stream:
        client = Client(stream.address)
        done, largest = led(stream, client)
    client.thread.join(10.0)
    assert done.status == FINISHED and client.failed is None
    forces = [said["force"][1] for said in client.heard]
    assert max(forces) == pytest.approx(largest, rel=0.05) and max(forces) > 0.1
    assert any(said["contacts"] for said in client.heard)
    ticks = [said["tick"] for said in client.heard]
    assert ticks == sorted(ticks)


def test_a_robot_hears_and_leads_a_run_by_ros(monkeypatch):
    graph = stand_in.Graph()
    for name, module in graph.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    with Ros(100.0) as stream:
        arm = Arm(graph)
        done, largest = led(stream, arm)
    assert done.status == FINISHED and arm.failed is None
    up = [message.wrench.force.z for message in graph.published["/palpo/force"]]
    down = [message.pose.position.z for message in graph.published["/palpo/pose"]]
    assert max(up) == pytest.approx(largest, rel=0.05) and max(up) > 0.1
    assert down[0] - min(down) > 5e-3
