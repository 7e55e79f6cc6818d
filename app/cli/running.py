"""The commands that run a scene, show one or repeat one: what is asked of them, and what they do."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import check_file, check_folder
from palpo.config.words import Refusal

if TYPE_CHECKING:
    from palpo.app.report.outcome import Outcome
    from palpo.app.runtime.knob import ViewKnob
    from palpo.app.runtime.operator import Operator
    from palpo.app.streams.stream import Stream

DEMO, DEMO_REPORT = "wire", Path("out") / "demo"
SHOWN, LENT = 8.0, 60.0
"""Seconds of the demo in which a simulated hand shows it, and in which the user has the tool after that."""
LOADING = "loading; the first time, compiling"


def add_running(commands: Any) -> None:
    """The commands and their options."""
    run = commands.add_parser("run", help="run a scene")
    _scene_options(run)
    run.set_defaults(command=_run, stream=None)

    stream = commands.add_parser("stream", help="run a scene that others hear, and may lead, by a websocket")
    _scene_options(stream)
    _rate(stream, 60.0)
    _place(stream, 7421)
    stream.add_argument("--origin", action="append", default=[], metavar="URL",
                        help="origin of a page that may connect, such as http://localhost:3000")  # fmt: skip
    stream.set_defaults(command=_run, stream=_websocket)

    ros = commands.add_parser("ros", help="run a scene as a node of ROS 2, which a robot's pose may lead")
    _scene_options(ros)
    _rate(ros, 100.0)
    ros.add_argument("--name", default="palpo", help="name of the node, below which its topics are (palpo)")
    ros.set_defaults(command=_run, stream=_ros)

    serve = commands.add_parser("serve", help="show a running scene or a recording in a browser")
    serve.add_argument("scene", nargs="?", metavar="SCENE",
                       help="a scene as for `palpo run`, or a recording (chosen on the page)")  # fmt: skip
    serve.add_argument("--device", action="append", help="what leads the tool (page: who is at the browser)")
    serve.add_argument("--duration", type=float, metavar="S", help="stop after this many seconds")
    serve.add_argument("--record", type=Path, metavar="FILE", help="record every tick in this HDF5 file")
    serve.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                       help="change a key of the scene; may be repeated")  # fmt: skip
    _place(serve, 7423)
    _outputs(serve)
    serve.set_defaults(command=_serve)

    demo = commands.add_parser(
        "demo", help="show the wire, then let you move it; without a screen, write a report"
    )
    demo.add_argument("--headless", action="store_true", help="open no window")
    demo.add_argument("--duration", type=float, default=SHOWN, metavar="S",
                      help=f"seconds that the simulated hand plays ({SHOWN:g})")  # fmt: skip
    _outputs(demo)
    demo.set_defaults(command=_demo, lock_step=False, report=DEMO_REPORT)

    replay = commands.add_parser("replay", help="repeat a recorded run and compare the forces")
    replay.add_argument("file", type=Path, metavar="FILE")
    replay.add_argument("--scene", metavar="SCENE", help="lead another scene with the recorded hand")
    replay.add_argument(
        "--window", action="store_true", help="show the recording in a window with a timeline"
    )
    replay.add_argument("--ghost", type=Path, metavar="RECORDING",
                        help="with --window: also show the tool of another recording")  # fmt: skip
    _outputs(replay)
    add_camera(replay)
    replay.set_defaults(command=_replay)

    film = commands.add_parser("film", help="draw a recording as a film, MP4 or GIF")
    film.add_argument("file", type=Path, metavar="RECORDING", help="a file that `palpo run --record` wrote")
    film.add_argument(
        "--out", type=Path, metavar="FILE", help="name of the film, .mp4 or .gif (RECORDING.mp4)"
    )
    film.add_argument("--fps", type=float, metavar="N", help="pictures per second (30; GIF: 15)")
    film.add_argument("--size", type=_pixels, metavar="WxH", help="size in pixels (1280x720; GIF: 640x360)")
    film.add_argument("--speed", type=float, default=1.0, metavar="X",
                      help="speed of the film; 0.1 is ten times slower (1)")  # fmt: skip
    film.set_defaults(command=_film)

    out = commands.add_parser("export", help="write a recording for other programs: VTK, USD, glTF")
    out.add_argument("file", type=Path, metavar="RECORDING", help="a file that `palpo run --record` wrote")
    out.add_argument("--vtk", type=Path, metavar="DIR", help="folder for a series of VTK files, for ParaView")
    out.add_argument("--usd", type=Path, metavar="FILE", help="name of a USD file: .usda, .usdc or .usd")
    out.add_argument("--gltf", type=Path, metavar="FILE", help="name of a glTF file: .glb or .gltf")
    out.add_argument("--fps", type=float, default=25.0, metavar="N", help="moments per second (25)")
    out.set_defaults(command=_export)

    hand = commands.add_parser("hand", help="use a device on this computer to touch a scene on another one")
    hand.add_argument(
        "place",
        metavar="HOST:PORT",
        help="address of the computer that runs `palpo run SCENE --device remote:PORT`",
    )
    hand.add_argument("--key", metavar="KEY", help="the key that it prints, unless PALPO_REMOTE_KEY is set")
    hand.add_argument("--device", default="auto", help="auto, or a name that `palpo devices` lists")
    hand.add_argument("--duration", type=float, metavar="S", help="stop after this many seconds")
    hand.set_defaults(command=_hand)


def _rate(command: argparse.ArgumentParser, usual: float) -> None:
    command.add_argument("--rate", type=float, default=usual, metavar="HZ",
                         help=f"readings a second, at most 250 ({usual:g})")  # fmt: skip


def _place(command: argparse.ArgumentParser, usual: int) -> None:
    command.add_argument(
        "--host", default="127.0.0.1", help="where to listen (127.0.0.1: this computer only)"
    )
    command.add_argument(
        "--port", type=_port, default=usual, help=f"where to listen ({usual}); 0 takes a free one"
    )


def _port(text: str) -> int:
    """A number of a port."""
    if not (text.isdecimal() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text}: give a port from 0 to 65535")
    return int(text)


def _websocket(options: argparse.Namespace) -> Stream:
    """The websocket of `palpo stream`."""
    from palpo.app.streams.websocket import Websocket

    return Websocket(options.rate, options.host, options.port, origins=options.origin)


def _ros(options: argparse.Namespace) -> Stream:
    """The node of `palpo ros`."""
    from palpo.app.streams.ros import Ros

    return Ros(options.rate, options.name)


def _scene_options(run: argparse.ArgumentParser) -> None:
    """What a run is asked."""
    run.add_argument("scene", metavar="SCENE", help="a name that `palpo scenes` lists, or a TOML file")
    run.add_argument("--device", action="append",
                     help="auto, or a name that `palpo devices` lists; repeat it for each hand")  # fmt: skip
    run.add_argument(
        "--unit", choices=("m", "mm"), default="m", help="unit of the positions in a trajectory file (m)"
    )
    run.add_argument(
        "--replay-scale", type=float, default=1.0, help="scale the lengths in a trajectory file (1)"
    )
    run.add_argument("--headless", action="store_true", help="open no window")
    run.add_argument(
        "--duration",
        type=float,
        metavar="S",
        help="length of the run in seconds (default: the scene's own path)",
    )
    run.add_argument("--record", type=Path, metavar="FILE", help="record every tick in this HDF5 file")
    run.add_argument("--ghost", type=Path, metavar="RECORDING",
                     help="also show the tool of a recorded run, in a window")  # fmt: skip
    run.add_argument("--export", type=Path, metavar="FILE",
                     help="write the last tick's contact problem to this FCLIB file (.h5)")  # fmt: skip
    run.add_argument("--export-at", type=float, metavar="S",
                     help="export the problem at this time instead; needs --lock-step")  # fmt: skip
    run.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                     help="change a key of the scene, such as rates.low_hz=25; may be repeated")  # fmt: skip
    run.add_argument(
        "--lock-step", action="store_true", help="compute in one thread without a clock: exactly repeatable"
    )
    run.add_argument(
        "--interface",
        help="how the rates are joined: krylov, paper, extrapolated; monolithic with --lock-step",
    )
    _outputs(run)
    add_camera(run)


def add_camera(command: argparse.ArgumentParser) -> None:
    """The option that names what turns the view of a window."""
    command.add_argument("--camera", metavar="DEVICE", default=argparse.SUPPRESS,
                         help="device that turns the view: spacemouse or gamepad")  # fmt: skip
    for option, tracking, words in (
        ("--headset", "still", "draw for a headset by OpenXR, too"),
        ("--head-tracking", "tracked", "the same, and the head's pose turns the view"),
    ):
        command.add_argument(option, dest="headset", action="store_const", const=tracking,
                             default=argparse.SUPPRESS, help=words)  # fmt: skip


def _knob(options: argparse.Namespace) -> ViewKnob | None:
    """What turns the view of a window, if something was named."""
    word = getattr(options, "camera", None)
    if word is None:
        return None
    from palpo.app.runtime.knob import open_knob

    return open_knob(word)


def _outputs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="write a report into this folder: an HTML page with pictures",
    )
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
    with ExitStack() as stack:
        if options.stream is not None:
            if options.lock_step:
                raise Refusal("--lock-step: others hear a run by the clock; leave it out")
            stream = stack.enter_context(options.stream(options))
            wanted = replace(wanted, stream=stream)
            for words in stream.told:
                progress.say(words)
        operator = _operator(options, progress)
        if operator is None and options.ghost is not None:
            raise Refusal(f"--ghost {options.ghost}: a recorded tool is shown in a window, and there is none")
        if operator is None:
            done = session.run(wanted, progress)
        else:
            stack.enter_context(operator)
            done = operator.run(replace(wanted, window=True))
    _finish(options, done, progress)
    return done.status


def _serve(options: argparse.Namespace) -> int:
    _check_outputs(options)
    if options.record is not None:
        check_file(options.record, "--record")
    progress = Progress()
    with progress.stage(LOADING):
        from palpo.app.runtime.operator import Operator
        from palpo.app.runtime.options import Options
        from palpo.app.runtime.viewer import Viewer
        from palpo.app.web.panel import PagePanel
        from palpo.app.web.server import Server
        from palpo.app.web.window import PageWindow

    def page() -> tuple[PageWindow, PagePanel]:
        try:
            server = Server(options.host, options.port)
        except OSError as error:
            why = error.strerror or error
            raise Refusal(
                f"{options.host}:{options.port} cannot be used ({why}); give another --port"
            ) from None
        for words in server.told:
            progress.say(words)
        window = PageWindow(server)
        return window, PagePanel(window)

    first, *further = options.device or ("page",)
    wanted = Options(
        options.scene or "", tuple(options.overrides), first, tuple(further), duration=options.duration,
        record=options.record, window=True, page=True,
    )  # fmt: skip
    done: Outcome | None
    if Path(wanted.scene).suffix in (".h5", ".hdf5"):
        with Viewer(Path(wanted.scene), progress, screen=page) as viewer:
            done = viewer.run()
    else:
        with Operator(progress, screen=page) as operator:
            done = operator.run(wanted) if wanted.scene else operator.launch(wanted)
    if done is None:
        return 0
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
    headset = getattr(options, "headset", None)
    shown = not (options.headless or options.lock_step)
    if headset is not None and not shown:
        raise Refusal("--headset: it is drawn for by the window; leave --headless and --lock-step out")
    if not shown:
        progress.say(
            "no window, because of --headless"
            if options.headless
            else "no window, because --lock-step has no clock"
        )
        return None
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        progress.say("no window, because there is no display")
        return None
    from palpo.render.gl import RenderUnavailable

    try:
        from palpo.app.runtime.operator import Operator

        return Operator(progress, _knob(options), headset)
    except RenderUnavailable as missing:
        if headset is not None:
            raise Refusal(f"--headset: {missing}") from None
        progress.say(f"no window: {missing}")
        return None


def _replay(options: argparse.Namespace) -> int:
    _check_outputs(options)
    progress = Progress()
    if options.window:
        return _view(options, progress)
    if options.ghost is not None:
        raise Refusal(f"--ghost {options.ghost}: add --window to see it")
    with progress.stage(LOADING):
        from palpo.app.runtime.replay import replay
    done = replay(options.file, options.scene, progress)
    _finish(options, done, progress)
    return done.status


def _view(options: argparse.Namespace, progress: Progress) -> int:
    """A recording in a window; Refusal where there can be none, as it was asked for."""
    if options.scene is not None:
        raise Refusal(
            f"--window with --scene {options.scene}: a window shows the recorded scene; leave --scene out"
        )
    with progress.stage(LOADING):
        from palpo.app.runtime.viewer import Viewer
    with Viewer(
        options.file, progress, options.ghost, _knob(options), getattr(options, "headset", None)
    ) as viewer:
        done = viewer.run()
    _finish(options, done, progress)
    return done.status


def _film(options: argparse.Namespace) -> int:
    progress = Progress()
    with progress.stage(LOADING):
        from palpo.app.report.film import film
    out = film(options.file, options.out, options.fps, options.size, options.speed, progress)
    print(f"wrote {out}")
    return 0


def _export(options: argparse.Namespace) -> int:
    progress = Progress()
    with progress.stage(LOADING):
        from palpo.app.report.export import export
    for path in export(options.file, options.vtk, options.usd, options.gltf, options.fps, progress):
        print(f"wrote {path}")
    return 0


def _pixels(text: str) -> tuple[int, int]:
    """`1280x720` as two numbers."""
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text}: give width and height in pixels, such as 1280x720")
    return int(width), int(height)


def _hand(options: argparse.Namespace) -> int:
    from palpo.app.cli.hand import print_hand

    return print_hand(options.place, options.key, options.device, options.duration)


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
