"""The commands that run a scene, show one or repeat one: what is asked of them, and what they do."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import Refusal, check_file, check_folder

if TYPE_CHECKING:
    from palpo.app.report.outcome import Outcome
    from palpo.app.runtime.knob import ViewKnob
    from palpo.app.runtime.operator import Operator

DEMO, DEMO_REPORT = "wire", Path("out") / "demo"
SHOWN, LENT = 8.0, 60.0
"""Seconds of the demo in which a simulated hand shows it, and in which the user has the tool after that."""
LOADING = "loading; the first time, compiling the servo"


def add_running(commands: Any) -> None:
    """The commands and their options."""
    run = commands.add_parser("run", help="run a scene")
    run.add_argument("scene", metavar="SCENE", help="a name that `palpo scenes` lists, or a TOML file")
    run.add_argument("--device", action="append",
                     help="auto, or one of those that `palpo devices` lists; once for each hand")  # fmt: skip
    run.add_argument("--device-name", metavar="NAME", help="which one, where there are several")
    run.add_argument("--unit", choices=("m", "mm"), default="m", help="of a foreign trajectory's positions")
    run.add_argument("--replay-scale", type=float, default=1.0, help="factor on a trajectory's lengths")
    run.add_argument("--headless", action="store_true", help="without a window")
    run.add_argument("--duration", type=float, metavar="S", help="seconds; without it, as long as the path")
    run.add_argument("--record", type=Path, metavar="FILE", help="write all servo rows to this HDF5 file")
    run.add_argument("--ghost", type=Path, metavar="RECORDING",
                     help="show the tool of a recorded run beside the live one, in a window")  # fmt: skip
    run.add_argument("--export", type=Path, metavar="FILE",
                     help="write the last tick's contact problem to this FCLIB file (.h5)")  # fmt: skip
    run.add_argument("--export-at", type=float, metavar="S",
                     help="the problem at this time instead, with --lock-step")  # fmt: skip
    run.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                     help="change a key of the scene, such as rates.low_hz=25; may be repeated")  # fmt: skip
    run.add_argument("--lock-step", action="store_true", help="both rates in one thread, without a clock")
    run.add_argument("--interface", help="krylov, paper, extrapolated, or monolithic with --lock-step")
    _outputs(run)
    add_camera(run)
    run.set_defaults(command=_run)

    demo = commands.add_parser(
        "demo", help="show the wire and lend you its end, in a window; without a screen, as a report"
    )
    demo.add_argument("--headless", action="store_true", help="without a window")
    demo.add_argument("--duration", type=float, default=SHOWN, metavar="S",
                      help=f"seconds that the simulated hand shows it ({SHOWN:g})")  # fmt: skip
    _outputs(demo)
    demo.set_defaults(command=_demo, lock_step=False, report=DEMO_REPORT)

    replay = commands.add_parser("replay", help="repeat a recording and compare with it")
    replay.add_argument("file", type=Path, metavar="FILE")
    replay.add_argument("--scene", metavar="SCENE", help="another scene under the recorded hand")
    replay.add_argument("--window", action="store_true", help="show it in a window, with a timeline")
    replay.add_argument("--ghost", type=Path, metavar="RECORDING",
                        help="with --window: the tool of another recording beside it")  # fmt: skip
    _outputs(replay)
    add_camera(replay)
    replay.set_defaults(command=_replay)

    film = commands.add_parser("film", help="draw a recording as a film, MP4 or GIF")
    film.add_argument("file", type=Path, metavar="RECORDING", help="what `palpo run --record` wrote")
    film.add_argument("--out", type=Path, metavar="FILE", help="ends in .mp4 or .gif (RECORDING.mp4)")
    film.add_argument("--fps", type=float, metavar="N", help="pictures a second (30, a GIF 15)")
    film.add_argument("--size", type=_pixels, metavar="WxH", help="pixels (1280x720, a GIF 640x360)")
    film.add_argument("--speed", type=float, default=1.0, metavar="X",
                      help="seconds of the scene in one of the film; 0.1 is slow motion (1)")  # fmt: skip
    film.set_defaults(command=_film)

    hand = commands.add_parser("hand", help="touch, with a device of this machine, a scene on another one")
    hand.add_argument(
        "place", metavar="HOST:PORT", help="where palpo run SCENE --device remote:HOST:PORT waits"
    )
    hand.add_argument("--device", default="auto", help="auto, or one of those that `palpo devices` lists")
    hand.add_argument("--device-name", metavar="NAME", help="which one, where there are several")
    hand.add_argument("--duration", type=float, metavar="S", help="end after so many seconds")
    hand.set_defaults(command=_hand)


def add_camera(command: argparse.ArgumentParser) -> None:
    """The option that names what turns the view of a window."""
    command.add_argument("--camera", metavar="DEVICE", default=argparse.SUPPRESS,
                         help="spacemouse or gamepad: it turns the view of the window")  # fmt: skip


def _knob(options: argparse.Namespace) -> ViewKnob | None:
    """What turns the view of a window, if something was named."""
    word = getattr(options, "camera", None)
    if word is None:
        return None
    from palpo.app.runtime.knob import open_knob

    return open_knob(word)


def _outputs(command: argparse.ArgumentParser) -> None:
    command.add_argument("--report", type=Path, metavar="DIR", help="write an HTML page and its pictures")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")


def _check_outputs(options: argparse.Namespace) -> None:
    """Find out now what could not be written after the run."""
    if options.report is not None:
        check_folder(options.report, "--report")
    if options.json is not None:
        check_file(options.json, "--json")


def launch(options: argparse.Namespace) -> int | None:
    """Let somebody choose a scene in a window; None where there is none."""
    progress = Progress()
    operator = _operator(options, progress)
    if operator is None:
        return None
    with operator:
        done = operator.launch()
    if done is None:
        return 0
    _finish(argparse.Namespace(report=None, json=None), done, progress)
    return done.status


def _run(options: argparse.Namespace) -> int:
    _check_outputs(options)
    if options.record is not None:
        check_file(options.record, "--record")
    if options.export is not None:
        if options.export.suffix.lower() not in (".h5", ".hdf5"):
            raise Refusal(f"--export {options.export}: FCLIB is written to a file that ends in .h5 or .hdf5")
        check_file(options.export, "--export")
    progress = Progress()
    with progress.stage(LOADING):
        from palpo.app.runtime import session
        from palpo.app.runtime.options import Options
    first, *further = options.device or ("auto",)
    wanted = Options(
        options.scene,
        tuple(options.overrides),
        first,
        options.device_name,
        tuple(further),
        options.unit,
        options.replay_scale,
        options.duration,
        options.record,
        options.lock_step,
        options.interface,
        export=options.export,
        export_at=options.export_at,
        ghost=options.ghost,
    )
    operator = _operator(options, progress)
    if operator is None and options.ghost is not None:
        raise Refusal(f"--ghost {options.ghost}: there is no window to show a recorded tool in")
    if operator is None:
        done = session.run(wanted, progress)
    else:
        with operator:
            done = operator.run(replace(wanted, window=True))
    _finish(options, done, progress)
    return done.status


def _demo(options: argparse.Namespace) -> int:
    _check_outputs(options)
    progress = Progress()
    with progress.stage(LOADING):
        from palpo.app.cli.summary import print_places
        from palpo.app.runtime import session
        from palpo.app.runtime.options import Options
    shown = Options(DEMO, device="mock", duration=options.duration)
    operator = _operator(options, progress)
    if operator is None:
        done = session.run(shown, progress)
    else:
        lent = replace(shown, device="auto", duration=LENT, window=True, baseline=False)
        with operator:
            done = operator.run(replace(shown, window=True), lent)
    _finish(options, done, progress)
    print_places(options.report)
    return done.status


def _operator(options: argparse.Namespace, progress: Progress) -> Operator | None:
    """Somebody at a window, or None, with the reason said."""
    if options.headless or options.lock_step:
        progress.say("headless, as asked" if options.headless else "headless: lock-step has no clock")
        return None
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        progress.say("there is no display, so this run is headless")
        return None
    from palpo.render.gl import RenderUnavailable

    try:
        from palpo.app.runtime.operator import Operator

        return Operator(progress, _knob(options))
    except RenderUnavailable as missing:
        progress.say(f"headless: {missing}")
        return None


def _replay(options: argparse.Namespace) -> int:
    _check_outputs(options)
    progress = Progress()
    if options.window:
        return _view(options, progress)
    if options.ghost is not None:
        raise Refusal(f"--ghost {options.ghost}: give --window, too, to see it in")
    with progress.stage(LOADING):
        from palpo.app.runtime.replay import replay
    done = replay(options.file, options.scene, progress)
    _finish(options, done, progress)
    return done.status


def _view(options: argparse.Namespace, progress: Progress) -> int:
    """A recording in a window; Refusal where there can be none, as it was asked for."""
    if options.scene is not None:
        raise Refusal(f"--window with --scene {options.scene}: a window shows a recording as it was")
    with progress.stage(LOADING):
        from palpo.app.runtime.viewer import Viewer
    with Viewer(options.file, progress, options.ghost, _knob(options)) as viewer:
        done = viewer.run()
    _finish(options, done, progress)
    return done.status


def _film(options: argparse.Namespace) -> int:
    progress = Progress()
    with progress.stage(LOADING):
        from palpo.app.report.film import film
    out = film(options.file, options.out, options.fps, options.size, options.speed, progress)
    print(f"the film is {out}")
    return 0


def _pixels(text: str) -> tuple[int, int]:
    """`1280x720` as two numbers."""
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text}: give width and height in pixels, such as 1280x720")
    return int(width), int(height)


def _hand(options: argparse.Namespace) -> int:
    from palpo.app.cli.hand import print_hand

    return print_hand(options.place, options.device, options.device_name, options.duration)


def _finish(options: argparse.Namespace, done: Outcome, progress: Progress) -> None:
    """Report, JSON and summary of a run or a replay."""
    from palpo.app.cli.summary import print_summary
    from palpo.app.report.outcome import peak_memory_mb, write_json

    done.result["memory_mb"] = peak_memory_mb()
    if options.report is not None:
        from palpo.app.report.publish import publish

        with progress.stage("writing the report"):
            done.result["report"] = str(publish(options.report, done))
        done.result["memory_with_report_mb"] = peak_memory_mb()
    write_json(options.json, done.result)
    print_summary(done.result)
