"""A hand at the other end of a network: `palpo hand` runs there, with any device, and calls here."""

from __future__ import annotations

import math
import os
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import KEY_VARIABLE, Device, DeviceOptions, ServoDriver, external_device
from palpo.app.devices.protection import device_spec
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import VirtualDevice
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.errors import HapticsError
from palpo.physics.exchange.ahead import Ahead

if TYPE_CHECKING:
    from palpo.haptics.servo import Servo

PATIENCE = 300.0
"""Seconds for which a hand is waited for."""
FILTER_HZ = 30.0
"""Low-pass of the angular velocity, which is that of the orientations."""


class Remote(Device):
    """The scene's end of the channel."""

    word, argument = "remote", "[HOST:]PORT"
    about = "a hand on another machine, where `palpo hand` runs; without HOST it must be this machine"
    live = rebased = hardware = True
    automatic = False
    taking = (
        "Take the tool",
        "the hand at the other end leads it, as late as the network is",
        "button 2 held down: the tool stays, and the hand may go back",
    )

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        from palpo.haptics.backends.channel import endpoint

        if asked.lock_step:
            raise HapticsError(
                f"--device {self.word}: a hand cannot be held in lock-step; leave --lock-step out"
            )
        if not argument:
            raise HapticsError(f"--device {self.word}: name the port at which it calls, {self.word}:7420")
        self.place = endpoint(argument)

    @property
    def title(self) -> str:
        return f"remote hand at {self.place[0]}:{self.place[1]}"

    def open(self, spec: BaseScene, stack: ExitStack) -> DeviceSpec:
        from palpo.haptics.backends.channel import SCENE, Channel
        from palpo.haptics.backends.sealing import new_key

        told = os.environ.get(KEY_VARIABLE, "")
        key = told or new_key()
        self._channel = stack.enter_context(Channel(SCENE, key, dt=spec.rates.dt))
        self._channel.listen(*self.place)
        calling = f"palpo hand HOST:{self.place[1]}" + ("" if told else f" --key {key}")
        self.tell(f"waiting for a hand at {self.place[0]}:{self.place[1]}; there: {calling}")
        if not self._channel.join(PATIENCE, lambda: self.given_up):
            raise HapticsError(f"no hand has called at {self.place[0]}:{self.place[1]} for {PATIENCE:g} s")
        self.tell("")
        nominal, reach = device_spec(spec), 3 * (math.inf,)
        return replace(
            nominal,
            name="remote hand",
            max_force=min(nominal.max_force, self._channel.largest),
            reach=((-reach[0], -reach[1], -reach[2]), reach),
        )

    def make(self, spec: BaseScene, held: NDArray[np.float64]) -> tuple[VirtualDevice, Ahead]:
        return external_device(spec.rates.dt, FILTER_HZ)

    def driver(self, servo: Servo) -> ServoDriver:
        from palpo.haptics.backends.channel import SceneThread

        return SceneThread(servo, self._channel, lambda: self.given_up)
