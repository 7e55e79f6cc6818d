"""What stands between a device and a scene: the map of its workspace, and what protects the hand."""

from dataclasses import replace

from palpo.config.schema.scene import BaseScene
from palpo.config.schema.vectors import quaternion
from palpo.haptics.cues import make_cues
from palpo.haptics.device_spec import DEVICES, DeviceSpec
from palpo.haptics.guard import Motors, make_guard
from palpo.haptics.limits import Fades, LimitParams, buttons_mask, make_limits
from palpo.haptics.passivity import make_passivity
from palpo.haptics.workspace import Workspace, make_workspace


def device_spec(spec: BaseScene) -> DeviceSpec:
    """The device's nominal figures with the scene's own mass, friction and delay."""
    nominal, hand = DEVICES[spec.device.model], spec.device.hand
    return replace(
        nominal,
        mass=nominal.mass if hand.mass is None else hand.mass,
        friction=nominal.friction if hand.friction is None else hand.friction,
        delay=nominal.delay if hand.delay is None else hand.delay,
    )


def workspace_of(spec: BaseScene) -> Workspace:
    """The map from the device's axes to the scene's."""
    w = spec.workspace
    clutch = buttons_mask([w.clutch_button] if w.clutch_button else [])
    return make_workspace(
        w.scale, w.offset, w.quaternion, w.force_scale, clutch,
        quaternion(w.mount), w.handed == "left", w.neutral == "first",
    )  # fmt: skip


def limits_of(spec: BaseScene, device: DeviceSpec | None = None) -> LimitParams:
    """What protects the hand: the scene's limits, never above the device's; None is the scene's model."""
    safety, dt = spec.safety, spec.rates.dt
    device = device or DEVICES[spec.device.model]
    guard = make_guard(*device.reach, safety.edge_margin, safety.edge_stiffness, safety.saturation_damping)
    wanted, max_rate = spec.cues, min(safety.max_rate, device.max_rate)
    bandwidth = device.bandwidth if wanted.bandwidth is None else wanted.bandwidth
    return make_limits(
        min(safety.max_force or device.max_force, device.max_force),
        max_rate=max_rate,
        max_age=safety.frame_age_limit,
        dt=dt,
        fades=Fades(safety.fade_in, safety.fade_out, safety.recovery, safety.emergency, safety.start_force),
        ceiling=device.max_force,
        emergency_buttons=buttons_mask(safety.emergency_buttons),
        guard=guard,
        passivity=make_passivity(safety.passivity or spec.passivity, safety.passivity_damping, dt),
        motors=Motors(
            device.max_torque, continuous_force=device.continuous_force, thermal_time=device.thermal_time
        ),
        cues=make_cues(bandwidth, device.max_force, max_rate, wanted.vibration, spec.clicks, dt),
    )
