"""rclpy and its messages as far as `palpo ros` calls them, by their documentation: strict, in one process.

From the documentation of rclpy and of rosidl's Python generator, not from our code:
  messages: fields of one type each, which is checked as they are set; no other attributes;
  names: of nodes [A-Za-z_][A-Za-z0-9_]*; `~/x` is below the node's own;
  contexts: initialised once, shut down once; a node lives in one that is, and is destroyed before it;
  quality of service: a publisher that is reliable is heard by every subscription, a best-effort one only by
  best-effort ones; `depth` messages are kept for who has not spun yet, the newest;
  callbacks run in the thread that spins an executor, and in no other.
"""

import re
import threading
import types
from array import array
from collections import deque

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NodeNameInvalid(Exception):
    """rclpy.exceptions.InvalidNodeNameException."""


def message(name, **fields):
    """A message's class: fields with the type that each must have; those that are lists start empty."""

    def begin(self):
        for field, kind in fields.items():
            object.__setattr__(self, field, array("d") if kind is array else kind())

    def put(self, field, value):
        assert field in fields, f"{name} has no attribute {field}"
        kind = fields[field]
        if kind is array:
            assert all(type(one) is float for one in value), f"{name}.{field} must be floats"
            value = array("d", value)
        assert type(value) is kind, f"{name}.{field} must be {kind.__name__}, not {type(value).__name__}"
        if kind is int:
            assert -(2**31) <= value < 2**32
        object.__setattr__(self, field, value)

    return type(name, (), {"__init__": begin, "__setattr__": put, "__slots__": tuple(fields)})


Time = message("Time", sec=int, nanosec=int)
Header = message("Header", stamp=Time, frame_id=str)
Point = message("Point", x=float, y=float, z=float)
Vector3 = message("Vector3", x=float, y=float, z=float)
_Quaternion = message("Quaternion", x=float, y=float, z=float, w=float)


class Quaternion(_Quaternion):
    """rosidl starts it at no turn."""

    __slots__ = ()

    def __init__(self):
        super().__init__()
        self.w = 1.0


Pose = message("Pose", position=Point, orientation=Quaternion)
Wrench = message("Wrench", force=Vector3, torque=Vector3)
PoseStamped = message("PoseStamped", header=Header, pose=Pose)
WrenchStamped = message("WrenchStamped", header=Header, wrench=Wrench)
PoseArray = message("PoseArray", header=Header, poses=list)
Float64MultiArray = message("Float64MultiArray", layout=object, data=array)


class Context:
    """rclpy.Context."""

    def __init__(self):
        self.state = "new"

    def check(self):
        assert self.state == "up", f"the context is {self.state}"


class Graph:
    """Who subscribes to what; a test takes messages from it and sends its own."""

    def __init__(self):
        self.subscriptions, self.published, self.nodes, self.contexts = [], {}, [], []

    def send(self, topic, sent, reliable=True):
        """Publish as another node."""
        for subscription in self.subscriptions:
            if subscription.topic == topic:
                assert type(sent) is subscription.kind
                if reliable or not subscription.reliable:
                    subscription.take(sent)

    def modules(self):
        """What `import` finds: rclpy and the packages of messages, by name."""

        def module(name, **content):
            made = types.ModuleType(name)
            made.__dict__.update(content)
            return made

        reliability = types.SimpleNamespace(RELIABLE=1, BEST_EFFORT=2)

        class QoSProfile:
            def __init__(self, *, depth, reliability=1):
                assert type(depth) is int and depth > 0
                self.depth, self.reliable = depth, reliability == 1

        self.profile = QoSProfile
        made = [
            module("rclpy", init=self.init, shutdown=self.shutdown, create_node=self.create_node,
                   Context=self.context),
            module("rclpy.executors", SingleThreadedExecutor=Executor),
            module("rclpy.qos", QoSProfile=QoSProfile, ReliabilityPolicy=reliability),
            module("rclpy.signals", SignalHandlerOptions=types.SimpleNamespace(NO=0, ALL=3)),
            module("geometry_msgs"), module("std_msgs"),
            module("geometry_msgs.msg", PoseStamped=PoseStamped, WrenchStamped=WrenchStamped,
                   PoseArray=PoseArray),
            module("std_msgs.msg", Float64MultiArray=Float64MultiArray),
        ]  # fmt: skip
        return {one.__name__: one for one in made}

    def context(self):
        self.contexts.append(Context())
        return self.contexts[-1]

    def init(self, *, args=None, context=None, signal_handler_options=3):
        assert context is not None and context.state == "new", "init twice, or the process's own context"
        assert signal_handler_options == 0, "signals are the session's"
        context.state = "up"

    def shutdown(self, *, context=None):
        context.check()
        assert not [node for node in self.nodes if node.context is context], "a node is left"
        context.state = "down"

    def create_node(self, name, *, context=None):
        context.check()
        if not NAME.fullmatch(name):
            raise NodeNameInvalid(f"Invalid node name: {name}")
        self.nodes.append(Node(self, name, context))
        return self.nodes[-1]


class Node:
    """rclpy.node.Node."""

    def __init__(self, graph, name, context):
        self.graph, self.name, self.context, self.executor = graph, name, context, None

    def _topic(self, topic):
        assert topic.startswith("~/"), "a private name was to be expected"
        return f"/{self.name}/{topic[2:]}"

    def create_publisher(self, kind, topic, qos):
        self.context.check()
        return Publisher(self, kind, self._topic(topic))

    def create_subscription(self, kind, topic, callback, qos):
        self.context.check()
        reliable = True if type(qos) is int else qos.reliable
        depth = qos if type(qos) is int else qos.depth
        made = Subscription(self, kind, self._topic(topic), callback, depth, reliable)
        self.graph.subscriptions.append(made)
        return made

    def get_clock(self):
        return self

    def now(self):
        self.context.check()
        return self

    def to_msg(self):
        stamp = Time()
        stamp.sec, stamp.nanosec = 12, 345
        return stamp

    def destroy_node(self):
        self.context.check()
        self.graph.nodes.remove(self)
        self.graph.subscriptions[:] = [s for s in self.graph.subscriptions if s.node is not self]


class Publisher:
    """rclpy.publisher.Publisher."""

    def __init__(self, node, kind, topic):
        self.node, self.kind, self.topic = node, kind, topic

    def publish(self, sent):
        self.node.context.check()
        assert self.node in self.node.graph.nodes and type(sent) is self.kind
        self.node.graph.published.setdefault(self.topic, []).append(sent)


class Subscription:
    """rclpy.subscription.Subscription."""

    def __init__(self, node, kind, topic, callback, depth, reliable):
        self.node, self.kind, self.topic, self.callback = node, kind, topic, callback
        self.waiting, self.reliable = deque(maxlen=depth), reliable

    def take(self, sent):
        assert self.node.executor is not None, "no executor spins the node"
        with self.node.executor.news:
            self.waiting.append(sent)
            self.node.executor.news.notify_all()


class Executor:
    """rclpy.executors.SingleThreadedExecutor."""

    def __init__(self, *, context=None):
        context.check()
        self.context, self.nodes, self.over, self.idle = context, [], False, True
        self.news = threading.Condition()

    def add_node(self, node):
        assert node.context is self.context
        node.executor = self
        self.nodes.append(node)

    def _next(self):
        for node in self.nodes:
            for subscription in node.graph.subscriptions:
                if subscription.node is node and subscription.waiting:
                    return subscription, subscription.waiting.popleft()
        return None

    def spin(self):
        while True:
            with self.news:
                while not self.over and (found := self._next()) is None:
                    self.idle = True
                    self.news.notify_all()
                    self.news.wait()
                if self.over:
                    return
                self.idle = False
            found[0].callback(found[1])

    def settle(self):
        """For tests: return once nothing waits."""
        with self.news:
            self.news.wait_for(lambda: self.idle and not any(
                s.waiting for node in self.nodes for s in node.graph.subscriptions), 10.0)  # fmt: skip

    def shutdown(self):
        with self.news:
            self.over = True
            self.news.notify_all()
