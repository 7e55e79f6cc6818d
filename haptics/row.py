"""The record of one servo tick: its columns, and the kernel that fills them.

A row is float64 throughout, so that one array carries it through the ring; integers up to 2^53 are exact
and regain their type in the recording. Pose, velocities and commanded force are in scene axes; the device's
own pose and velocities, from which a replay starts, and the sent force in the device's.
"""

from dataclasses import dataclass, replace

from palpo.physics.numerics.kernels import kernel


@dataclass(frozen=True)
class Column:
    """One column of a recorded table."""

    name: str
    unit: str
    description: str
    dtype: str = "f8"


def _vector(names: str, unit: str, description: str) -> list[Column]:
    return [Column(name, unit, f"{description}, {name[-1]}") for name in names.split()]


def _integers(*items: tuple[str, str]) -> list[Column]:
    return [Column(name, "1", description, "i8") for name, description in items]


COLUMNS: tuple[Column, ...] = (
    Column("tick", "1", "number of the tick, from 0", "i8"),
    Column("time_s", "s", "tick times the period"),
    *_vector("px py pz", "m", "stylus position in the scene"),
    *[Column(f"q{c}", "1", f"stylus orientation quaternion in the scene, {c}") for c in "wxyz"],
    *_vector("vx vy vz", "m/s", "stylus velocity in the scene"),
    *_vector("wx wy wz", "rad/s", "stylus angular velocity in the scene"),
    *_vector("device_px device_py device_pz", "m", "device's own position"),
    *[Column(f"device_q{c}", "1", f"device's own orientation quaternion, {c}") for c in "wxyz"],
    *_vector("device_vx device_vy device_vz", "m/s", "device's own velocity"),
    *_vector("device_wx device_wy device_wz", "rad/s", "device's own angular velocity"),
    Column("buttons", "1", "button bit mask", "i8"),
    *_vector("force_x force_y force_z", "N", "commanded force in the scene"),
    *_vector("torque_x torque_y torque_z", "N m", "commanded torque in the scene"),
    *_vector("sent_x sent_y sent_z", "N", "force sent to the device, in its axes"),
    *_vector("sent_torque_x sent_torque_y sent_torque_z", "N m", "torque sent to the device, in its axes"),
    Column("residual", "1", "residual of the contact solve"),
    Column("depth", "m", "deepest penetration"),
    *_vector("held_x held_y held_z", "m", "held point of the tool"),
    *_vector("sum_x sum_y sum_z", "N", "sum of the constraint forces on the tool"),
    *_integers(
        ("status", "status code of the tick, 1 is well"),
        ("frame", "id of the frame consumed"),
        ("frame_age", "age of the frame in ticks since it became visible"),
        ("sweeps", "sweeps of the contact solver"),
        ("contacts", "active contacts"),
        ("rows", "constraint rows"),
        ("replayed", "ticks replayed to bring a new frame to the present"),
        ("tick_flags", "flags of the tick"),
        ("flags", "flags of the limiter, palpo.haptics.flags.FLAG_NAMES"),
    ),
    Column("late_us", "us", "lateness of the tick against its deadline, 0 in lock-step"),
    Column("step_us", "us", "time from the tick's start to its record, 0 in lock-step"),
    Column("energy_J", "J", "energy delivered to the hand so far, as the passivity observer has it"),
    Column("allowance", "1", "share of its largest force that the device allows, by its motors"),
)
NAMES = tuple(column.name for column in COLUMNS)
SHARED = (
    "tick", "time_s", "residual", "depth", "status", "frame", "frame_age", "sweeps", "contacts", "rows",
    "replayed", "tick_flags", "late_us", "step_us",
)  # fmt: skip
"""Columns that are one for all hands."""
OWN = tuple(k for k, name in enumerate(NAMES) if name not in SHARED)
"""Places of the columns that each hand has its own of."""


def columns_of(hands: int) -> tuple[Column, ...]:
    """The columns of a servo with so many hands: those of one, then each further hand's own, as `px_2`."""
    further = (
        replace(COLUMNS[k], name=f"{NAMES[k]}_{hand}", description=f"{COLUMNS[k].description}; hand {hand}")
        for hand in range(2, hands + 1)
        for k in OWN
    )
    return *COLUMNS, *further


@kernel
def write_row(row, tick, dt, port, device_port, sent, turned, flags, late_us, step_us, energy, allowance):
    """Fill row, shape (len(COLUMNS),), in the order of COLUMNS."""
    row[0] = tick
    row[1] = tick * dt
    k = 2
    for field in (
        port.position,
        port.orientation,
        port.velocity,
        port.angular_velocity,
        device_port.position,
        device_port.orientation,
        device_port.velocity,
        device_port.angular_velocity,
    ):
        for i in range(field.shape[0]):
            row[k] = field[i]
            k += 1
    row[k] = port.buttons[0]
    k += 1
    for field in (port.force, port.torque, sent, turned):
        for i in range(field.shape[0]):
            row[k] = field[i]
            k += 1
    info, status = port.info[0], port.status[0]
    row[k], row[k + 1] = info.residual, info.depth
    for i in range(3):
        row[k + 2 + i], row[k + 5 + i] = info.held[i], info.total[i]
    k += 8
    row[k], row[k + 1], row[k + 2], row[k + 3] = status.code, status.frame, status.age, status.sweeps
    row[k + 4], row[k + 5], row[k + 6] = status.contacts, status.rows, status.replayed
    row[k + 7] = status.flags
    k += 8
    row[k] = flags
    row[k + 1] = late_us
    row[k + 2] = step_us
    row[k + 3] = energy
    row[k + 4] = allowance
