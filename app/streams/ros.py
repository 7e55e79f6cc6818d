"""A run as a node of ROS 2: topics for its pose, force and contacts, and one whose poses lead its tool.

Axes and units are those of REP 103: x forward, away from the user, y left, z up; metres and newtons. What is
published is reliable, so that every kind of subscription hears it; poses that lead are taken as they come.
"""

from __future__ import annotations

import math
import threading
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.app.streams.stream import Moment, Stream
from palpo.haptics.errors import HapticsError
from palpo.haptics.guided import pose_of
from palpo.haptics.workspace import quaternion_from_axis_angle

LED = "led"
FRAME = "palpo"
"""Frame of all that is published, and of the poses that lead unless they name none."""
DEPTH = 1
"""Messages that are kept for each topic: the newest."""
TO_ROS = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Turns a vector of the scene into one of ROS."""


def to_ros(vectors: ArrayLike) -> NDArray[np.float64]:
    """Vectors (..., 3) of the scene's axes in those of ROS."""
    return np.asarray(vectors, float) @ TO_ROS.T


def from_ros(vectors: ArrayLike) -> NDArray[np.float64]:
    """Vectors (..., 3) of ROS's axes in the scene's."""
    return np.asarray(vectors, float) @ TO_ROS


def along(force: ArrayLike) -> NDArray[np.float64]:
    """The quaternion (4,) that turns x along a vector (3,); upright for none."""
    f = np.asarray(force, float)
    size = float(np.linalg.norm(f))
    if not size > 0.0:
        return np.array([1.0, 0.0, 0.0, 0.0])
    axis, angle = np.cross([1.0, 0.0, 0.0], f / size), math.acos(max(-1.0, min(1.0, float(f[0]) / size)))
    if not np.linalg.norm(axis) > 1e-9:
        axis = np.array([0.0, 0.0, 1.0])
    return quaternion_from_axis_angle(axis, angle)


class Ros(Stream):
    """A node and a thread that hears for it. name: of the node, below which its topics are."""

    def __init__(self, rate: float, name: str = "palpo") -> None:
        super().__init__(rate, f"ROS node {name}")
        self._name, self._newest = name, 0

    def __enter__(self) -> Self:
        try:
            import rclpy
            from geometry_msgs.msg import PoseArray, PoseStamped, WrenchStamped
            from rclpy.executors import SingleThreadedExecutor
            from rclpy.qos import QoSProfile, ReliabilityPolicy
            from rclpy.signals import SignalHandlerOptions
            from std_msgs.msg import Float64MultiArray
        except ImportError as missing:
            raise HapticsError(
                f"palpo ros needs ROS 2 ({missing.name} is missing): start it in a shell that has sourced "
                "/opt/ros/DISTRO/setup.bash, with that distribution's Python"
            ) from None
        self._context = rclpy.Context()
        # how the run ends on signals is the session's
        rclpy.init(args=[], context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        try:
            self._node = rclpy.create_node(self._name, context=self._context)
        except Exception as error:
            rclpy.shutdown(context=self._context)
            raise HapticsError(f"--name {self._name}: {' '.join(str(error).split())}") from None
        kinds = {
            "pose": PoseStamped, "force": WrenchStamped, "contacts": PoseArray,
            "contact_forces": Float64MultiArray,
        }  # fmt: skip
        self._kinds = kinds
        self._topics = {
            name: self._node.create_publisher(kind, f"~/{name}", DEPTH) for name, kind in kinds.items()
        }
        as_it_comes = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._node.create_subscription(PoseStamped, "~/lead", self._hear, as_it_comes)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._executor.spin, name="ros", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        import rclpy

        self._executor.shutdown()
        self._thread.join()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    @property
    def told(self) -> tuple[str, ...]:
        topics = ", ".join(f"/{self._name}/{name}" for name in self._topics)
        return (f"publishing {topics}; with --device {LED} poses of /{self._name}/lead lead the tool",)

    def publish(self, reading: Moment) -> None:
        if not np.isfinite(reading.position).all():
            return
        stamp = self._node.get_clock().now().to_msg()

        def stamped(name: str) -> Any:
            message = self._kinds[name]()
            message.header.stamp, message.header.frame_id = stamp, FRAME
            return message

        pose, force, contacts = stamped("pose"), stamped("force"), stamped("contacts")
        turn = reading.orientation
        _place(pose.pose, reading.position, np.append(turn[0], to_ros(turn[1:])))
        _fill(force.wrench.force, to_ros(np.nan_to_num(reading.force)))
        forces = self._kinds["contact_forces"]()
        forces.data = [float(size) for size in np.linalg.norm(reading.forces, axis=1)]
        for point, push in zip(reading.points, reading.forces, strict=True):
            contacts.poses.append(type(pose.pose)())
            _place(contacts.poses[-1], point, along(to_ros(push)))
        for name, message in (
            ("pose", pose), ("force", force), ("contacts", contacts), ("contact_forces", forces)
        ):  # fmt: skip
            self._topics[name].publish(message)

    def _hear(self, message: Any) -> None:
        """A pose that leads, if it is one, in our frame, and newer than the last."""
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        if message.header.frame_id not in ("", FRAME):
            named = message.header.frame_id[:40]
            self.say(f"poses of frame {named!r} are not followed, those of {FRAME!r} are")
            return
        if stamp and stamp <= self._newest:
            return
        p, q = message.pose.position, message.pose.orientation
        try:
            pose = pose_of(from_ros([p.x, p.y, p.z]), [q.w, *from_ros([q.x, q.y, q.z])])
        except ValueError as error:
            self.say(f"a pose was not followed: {error}")
            return
        self._newest = stamp or self._newest
        self.guide.put(pose, self)


def _fill(vector: Any, values: NDArray[np.float64]) -> None:
    vector.x, vector.y, vector.z = map(float, values)


def _place(pose: Any, point: NDArray[np.float64], turn: NDArray[np.float64]) -> None:
    """Fill a Pose: a point of the scene's axes, a quaternion (w, x, y, z) of ROS's."""
    _fill(pose.position, to_ros(point))
    pose.orientation.w = float(turn[0])
    _fill(pose.orientation, turn[1:])
