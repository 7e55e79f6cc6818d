"""The whole scene, and what its parts must agree on."""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from palpo.config.schema.attachment import Attachment, BodyPoint, FrameAttachment, WeldAttachment
from palpo.config.schema.base import Kinds, Spec, refuse
from palpo.config.schema.blade import BladeSpec
from palpo.config.schema.body import Beam, Place, Plane, Quasistatic, Rigid, Soft, Static
from palpo.config.schema.cavity import SLOWEST_HZ, AirSpec
from palpo.config.schema.cues import Cues
from palpo.config.schema.device import HapticDevice, Safety, WorkspaceSpec
from palpo.config.schema.needle import NeedleSpec
from palpo.config.schema.rates import Rates
from palpo.config.schema.solver import Contact, Friction, Interface, SolverSpec
from palpo.config.schema.surface import SurfaceSpec
from palpo.config.schema.tool import HoldSpec, Tool
from palpo.config.schema.units import Acceleration
from palpo.config.schema.view import View
from palpo.config.words import Key, choose

Body = Annotated[Soft | Beam | Rigid | Quasistatic | Plane | Static, Field(discriminator="kind"), Kinds()]
"""A body of a scene at two rates."""


@dataclass(frozen=True)
class Origin:
    """What a scene was made from; enough to make it again."""

    path: Path
    text: str
    overrides: tuple[str, ...]


class BaseScene(Spec):
    """What scenes of all systems have in common."""

    title: str = Field(min_length=1, description="Name of the scene.")
    description: str = Field("", description="One line for `palpo scenes`.")
    gravity: tuple[Acceleration, Acceleration, Acceleration] = Field(
        (0.0, -9.81, 0.0), description="Gravity; y is up."
    )
    rates: Rates = Field(Rates(), description="Rates of the loops.")
    device: HapticDevice = Field(HapticDevice(), description="The device and the simulated hand.")
    workspace: WorkspaceSpec = Field(WorkspaceSpec(), description="From the device's frame to the scene's.")
    safety: Safety = Field(Safety(), description="Limits on the force.")
    cues: Cues = Field(Cues(), description="Vibrations and sounds.")
    view: View = Field(View(), description="The camera.")

    _origin: Origin | None = PrivateAttr(None)

    @classmethod
    def claims(cls, kinds: Set[str]) -> bool:
        """Whether bodies of these kinds together make a scene one of this system; else its keys tell."""
        return False

    @property
    def clicks(self) -> bool:
        """Whether a force that falls at once is a click or a puncture; elsewhere it is a hand that leaves."""
        return False

    @property
    def passivity(self) -> Literal["observe", "control"]:
        """Mode of `safety.passivity` where a scene leaves it open; a body with inertia can throw the hand."""
        return "control"

    @property
    def hands(self) -> tuple["BaseScene", ...]:
        """The scene as each hand has it: one, where a system has one tool."""
        return (self,)

    @property
    def origin(self) -> Origin:
        """File, text and overrides that the scene was loaded from."""
        if self._origin is None:
            raise ValueError("this scene was not loaded from a file")
        return self._origin


class SceneSpec(BaseScene):
    """A multi-rate scene: bodies, what joins them, the tool, and how all of it is computed."""

    system: Literal["multirate"] = Field(
        "multirate", description="What computes the scene: bodies at two rates that an interface joins."
    )
    interface: Interface = Field(Interface(), description="How the rates are joined.")
    solver: SolverSpec = Field(SolverSpec(), description="Contact solver.")
    contact: Contact = Field(Contact(), description="Detection of contacts.")
    friction: Friction = Field(Friction(), description="Coefficients of friction.")
    bodies: tuple[Body, ...] = Field(min_length=1, description="The bodies.")
    surfaces: tuple[SurfaceSpec, ...] = Field((), description="How bodies feel to what slides on them.")
    attachments: tuple[Attachment, ...] = Field((), description="Bilateral constraints.")
    needles: tuple[NeedleSpec, ...] = Field(
        (), max_length=4, description="Tools that go into soft bodies with their tip."
    )
    blades: tuple[BladeSpec, ...] = Field((), max_length=2, description="Tools that cut soft bodies.")
    air: AirSpec | None = Field(None, description="Air that a cup shuts in; without the table, none is.")
    tool: Tool = Field(description="The body that the device holds.")
    tools: tuple[Tool, ...] = Field(
        (),
        description="Further tools, each held by a device of its own. Without a table `tool`, the first one "
        "stands for that: its device and workspace are the scene's.",
    )

    @model_validator(mode="before")
    @classmethod
    def _first_tool(cls, data: Any) -> Any:
        """Of a list of tools alone, the first one is the tool."""
        tools = data.get("tools") if isinstance(data, dict) else None
        if not isinstance(tools, list | tuple) or not tools or "tool" in data:
            return data
        if not isinstance(tools[0], dict):
            return data
        for key in ("device", "workspace"):
            if key in tools[0] and key in data:
                raise refuse("the first of the tools has one; leave out this table or that", key)
        own = {key: tools[0][key] for key in ("device", "workspace") if key in tools[0]}
        tool = {key: value for key, value in tools[0].items() if key not in own}
        return {**data, **own, "tool": tool, "tools": tools[1:]}

    @property
    def clicks(self) -> bool:
        """See BaseScene: where a needle or a blade goes in, the surface gives way at once."""
        return bool(self.needles or self.blades)

    @property
    def hands(self) -> tuple["SceneSpec", ...]:
        """The scene as each hand has it: with its own tool, device and workspace."""
        own = [
            self.model_copy(
                update={
                    "tool": tool,
                    "device": tool.device,
                    "workspace": WorkspaceSpec() if tool.workspace is None else tool.workspace,
                }
            )
            for tool in self.tools
        ]
        return (self, *own)

    def body(self, name: str) -> Body:
        """The body of this name; KeyError if there is none."""
        return {body.name: body for body in self.bodies}[name]

    @property
    def tool_body(self) -> Beam | Rigid | Quasistatic:
        """The body that the device holds."""
        body = self.body(self.tool.body)
        assert isinstance(body, Beam | Rigid | Quasistatic)
        return body

    def mu(self, a: str, b: str) -> float:
        """Friction coefficient between two bodies."""
        listed = {frozenset(pair.bodies): pair.mu for pair in self.friction.pairs}
        return listed.get(frozenset((a, b)), self.friction.default)

    @model_validator(mode="after")
    def _agrees(self) -> "SceneSpec":
        names: list[str] = []
        for body in self.bodies:
            if body.name in names:
                raise refuse(
                    "another body has this name already; give each its own", "bodies", body.name, "name"
                )
            names.append(body.name)
        for path, name in self._mentioned():
            if name not in names:
                raise refuse(f"no such body; {choose(name, names)}", *path)
        self._check_tool()
        self._check_pairs()
        self._check_air()
        self._check_needles()
        self._check_blades()
        for body in self.bodies:
            self._check_rate(body)
            for i, region in enumerate(getattr(body, "fixed", ())):
                path = ("bodies", body.name, "fixed", i)
                self._check_end(body, region.end, *path)
                for node in region.nodes or ():
                    self._check_node(body, node, *path, "nodes")
        for i, attachment in enumerate(self.attachments):
            self._check_attachment(attachment, "attachments", i)
        return self

    def _mentioned(self) -> Iterator[tuple[tuple[Key, ...], str]]:
        """Each mention of a body: the key it stands at, and the name."""
        yield ("tool", "body"), self.tool.body
        for i, tool in enumerate(self.tools):
            yield ("tools", i, "body"), tool.body
        for i, attachment in enumerate(self.attachments):
            yield ("attachments", i, "a", "body"), attachment.a.body
            if not isinstance(attachment, FrameAttachment):
                yield ("attachments", i, "b", "body"), attachment.b.body
        for i, surface in enumerate(self.surfaces):
            yield ("surfaces", i, "body"), surface.body
        for i, pair in enumerate(self.friction.pairs):
            yield from ((("friction", "pairs", i, "bodies", j), name) for j, name in enumerate(pair.bodies))
        for i, needle in enumerate(self.needles):
            yield ("needles", i, "body"), needle.body
            yield ("needles", i, "tissue"), needle.tissue
        for i, blade in enumerate(self.blades):
            yield ("blades", i, "body"), blade.body
            yield ("blades", i, "tissue"), blade.tissue
        if self.air is not None:
            yield ("air", "cup"), self.air.cup
            yield ("air", "partner"), self.air.partner
        for i, names in enumerate(self.contact.ignore):
            yield from ((("contact", "ignore", i, j), name) for j, name in enumerate(names))

    def _check_tool(self) -> None:
        for key in ("device", "workspace"):
            if getattr(self.tool, key) is not None:
                raise refuse("the first hand has the scene's; leave out this table", "tool", key)
        for i, tool in enumerate(self.tools):
            if tool.device is None:
                said = "the key is missing (its device, and the simulated hand that holds it)"
                raise refuse(said, "tools", i, "device")
        held: list[str] = []
        for path, tool in ((("tool",), self.tool), *((("tools", i), t) for i, t in enumerate(self.tools))):
            body = self.body(tool.body)
            if not isinstance(body, Beam | Rigid | Quasistatic):
                raise refuse(
                    f'this body is kind = "{body.kind}"; the tool must be a beam, rigid or quasi-static',
                    *path, "body",
                )  # fmt: skip
            if isinstance(body, Quasistatic):
                self._check_clamped(tool.hold, *path, "hold")
            elif body.rate != "high":
                said = 'the tool is computed at the servo\'s rate; write rate = "high"'
                raise refuse(said, "bodies", body.name, "rate")
            if body.name in held:
                raise refuse("another hand holds this body already; give each hand its own", *path, "body")
            held.append(body.name)
            if not isinstance(body, Quasistatic):
                self._check_place(body, tool.hold, *path, "hold")
        for i, body in enumerate(self.bodies):
            if isinstance(body, Quasistatic) and body.name not in held:
                said = "a quasi-static body is moved by a hand; name it in tool.body, or choose another kind"
                raise refuse(said, "bodies", i, "kind")
            if body.name not in held and getattr(body, "rate", "low") == "high":
                names = " and ".join(f'"{name}"' for name in held)
                who = f"only the tool, {names}, is" if len(held) == 1 else f"only the tools, {names}, are"
                said = f'{who} computed at the servo\'s rate; write rate = "low"'
                raise refuse(said, "bodies", body.name, "rate")
        if self.tools and self.interface.kind in ("paper", "extrapolated"):
            raise refuse(f'"{self.interface.kind}" knows one tool; choose "krylov"', "interface", "kind")

    def _check_clamped(self, hold: HoldSpec, *path: Key) -> None:
        """A hand moves a quasi-static body by its clamped nodes, and feels it at their centre."""
        for key in ("node", "end", "at"):
            if getattr(hold, key) is not None:
                raise refuse("a quasi-static body is held by its clamped nodes; leave it out", *path, key)
        if not hold.orientation:
            raise refuse("a quasi-static body turns with the hand; write true", *path, "orientation")
        if self.interface.kind != "krylov":
            raise refuse('a quasi-static tool takes kind = "krylov"', "interface", "kind")

    def _check_rate(self, body: Body) -> None:
        hz = getattr(body, "rate_hz", None)
        if hz is None:
            return
        if getattr(body, "rate", "low") == "high":
            raise refuse("the tool has the servo's rate, so leave it out", "bodies", body.name, "rate_hz")
        if said := self.rates.refusal(hz):
            raise refuse(said, "bodies", body.name, "rate_hz")

    def _check_air(self) -> None:
        if self.air is None:
            return
        for key in ("cup", "partner"):
            body = self.body(getattr(self.air, key))
            if not isinstance(body, Soft):
                raise refuse(
                    f'this body is kind = "{body.kind}"; only soft ones, "tets", shut in air', "air", key
                )
            if body.solver == "multigrid":
                raise refuse('a wall of a cavity takes solver = "direct"', "bodies", body.name, "solver")
            if body.incisions:
                said = "a body that shuts in air has no incisions; leave them out"
                raise refuse(said, "bodies", body.name, "incisions")
        if self.interface.kind != "krylov":
            raise refuse('shut-in air takes kind = "krylov"', "interface", "kind")
        if self.rates.low_hz < SLOWEST_HZ:
            said = (
                f"with shut-in air give {SLOWEST_HZ:g} Hz or more: longer frames can tear off a hanging cup"
            )
            raise refuse(said, "rates", "low_hz")
        for body in self.bodies:
            if getattr(body, "rate_hz", None) is not None:
                said = "with shut-in air all soft bodies have one loop; write rates.low_hz in its place"
                raise refuse(said, "bodies", body.name, "rate_hz")
        if self.air.sealing < self.contact.distance:
            said = f"it must not be below contact.distance = {self.contact.distance:g} m, or nothing seals"
            raise refuse(said, "air", "sealing")

    def _check_blades(self) -> None:
        held = {tool.body for tool in (self.tool, *self.tools)}
        for i, blade in enumerate(self.blades):
            body, tissue, path = self.body(blade.body), self.body(blade.tissue), ("blades", i)
            if blade.body not in held or not isinstance(body, Rigid):
                raise refuse('a blade is a tool, a body of kind = "rigid"', *path, "body")
            if not isinstance(tissue, Soft):
                said = f'this body is kind = "{tissue.kind}"; a blade cuts a soft one, "tets"'
                raise refuse(said, *path, "tissue")
            tissue.check_cut("a body that a blade cuts", ("bodies", tissue.name))
            if tissue.material.law != "linear":
                said = 'a body that a blade cuts follows law = "linear"'
                raise refuse(said, "bodies", tissue.name, "material", "law")
            if not tissue.fixed:
                said = "a body that a blade cuts needs nodes that never move"
                raise refuse(said, "bodies", tissue.name, "fixed")
            if any(b.tissue == blade.tissue for b in self.blades[:i]):
                raise refuse("another blade may cut this body; one does", *path, "tissue")
        if not self.blades:
            return
        if self.interface.kind != "krylov":
            raise refuse('a blade in tissue takes kind = "krylov"', "interface", "kind")
        if self.solver.name != "gauss-seidel":
            raise refuse('a blade in tissue takes name = "gauss-seidel"', "solver", "name")
        if self.air is not None:
            raise refuse("a scene has blades, or air that a cup shuts in; leave one out", "blades")

    def _check_needles(self) -> None:
        held = {tool.body for tool in (self.tool, *self.tools)}
        for i, needle in enumerate(self.needles):
            body, tissue = self.body(needle.body), self.body(needle.tissue)
            path = ("needles", i)
            slender = isinstance(body, Beam) or (isinstance(body, Rigid) and body.geometry.kind == "capsule")
            if needle.body not in held or not slender:
                said = "a needle is a tool: a beam, or a rigid body whose geometry is a capsule"
                raise refuse(said, *path, "body")
            if not isinstance(tissue, Soft):
                said = f'this body is kind = "{tissue.kind}"; a needle goes into a soft one, "tets"'
                raise refuse(said, *path, "tissue")
            if tissue.elements == "hex8":
                raise refuse(
                    "a needle goes into tetrahedra; choose other elements", "bodies", tissue.name, "elements"
                )
            if tissue.incisions:
                said = "a needle goes into a body without incisions; leave them out"
                raise refuse(said, "bodies", tissue.name, "incisions")
            if needle.cutting >= needle.puncture:
                said = f"it must be below puncture = {needle.puncture:g} N, which the surface bears"
                raise refuse(said, *path, "cutting")
            if any(blade.tissue == tissue.name for blade in self.blades):
                raise refuse("a blade may cut this body; leave one out", *path, "tissue")
            if any((n.body, n.tissue) == (needle.body, needle.tissue) for n in self.needles[:i]):
                raise refuse("this needle may go into this body already; keep one", *path, "tissue")
            if any(n.tissue == needle.tissue for n in self.needles[:i]):
                raise refuse("another needle may go into this body; one does", *path, "tissue")
        if not self.needles:
            return
        if self.interface.kind != "krylov":
            raise refuse('a needle in tissue takes kind = "krylov"', "interface", "kind")
        if self.solver.name != "gauss-seidel":
            raise refuse('a needle in tissue takes name = "gauss-seidel"', "solver", "name")
        if self.air is not None:
            raise refuse(
                "a scene has needles in tissue, or air that a cup shuts in; leave one out", "needles"
            )

    def _check_pairs(self) -> None:
        seen = set()
        for i, pair in enumerate(self.friction.pairs):
            key = frozenset(pair.bodies)
            if len(key) == 1 and not isinstance(self.body(pair.bodies[0]), Soft):
                said = "only a soft body touches itself; a pair is two bodies, or one of these twice"
                raise refuse(said, "friction", "pairs", i, "bodies")
            if key in seen:
                raise refuse("this pair is listed already; keep one", "friction", "pairs", i, "bodies")
            seen.add(key)

    def _check_attachment(self, attachment: Attachment, *path: Key) -> None:
        turns = isinstance(attachment, WeldAttachment) or getattr(attachment, "orientation", False)
        for side in ("a",) if isinstance(attachment, FrameAttachment) else ("a", "b"):
            point: BodyPoint = getattr(attachment, side)
            body = self.body(point.body)
            if isinstance(body, Quasistatic):
                raise refuse("nothing is attached to a quasi-static body", *path, side, "body")
            self._check_place(body, point, *path, side)
            if turns and isinstance(body, Soft):
                raise refuse(
                    "nodes of tets have no orientation to hold; attach a point instead", *path, side, "body"
                )
        bodies = [self.body(attachment.a.body)]
        if not isinstance(attachment, FrameAttachment):
            bodies.append(self.body(attachment.b.body))
        if all(body.kind in ("plane", "mesh") for body in bodies):
            raise refuse("a body that never moves cannot be attached to another such; one must move", *path)

    def _check_place(self, body: Body, place: Place, *path: Key) -> None:
        self._check_end(body, place.end, *path)
        if place.node is not None:
            self._check_node(body, place.node, *path, "node")
        if place.node is None and place.end is None and place.at is None and not isinstance(body, Rigid):
            raise refuse(f'say where on "{body.name}": one of node, end (of a beam) or at = [x, y, z]', *path)

    @staticmethod
    def _check_end(body: Body, end: str | None, *path: Key) -> None:
        if end is not None and not isinstance(body, Beam):
            raise refuse(f'only a beam has ends and "{body.name}" is kind = "{body.kind}"', *path, "end")

    @staticmethod
    def _check_node(body: Body, node: int, *path: Key) -> None:
        if not isinstance(body, Beam | Soft):
            raise refuse(f'"{body.name}" has no nodes; write at = [x, y, z]', *path)
        if isinstance(body, Beam) and node >= body.geometry.n_nodes:
            last = body.geometry.n_nodes - 1
            raise refuse(f'there is no node {node}; "{body.name}" has nodes 0 to {last}', *path)
