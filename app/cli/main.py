"""The command `palpo`. Each command imports what it needs, so that `palpo scenes` starts at once."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palpo.app.cli.lift import add_lift
from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import Refusal, account, check_file, check_folder, is_refusal

if TYPE_CHECKING:
    from palpo.app.report.outcome import Outcome
    from palpo.app.runtime.operator import Operator

BAD_INPUT, FAILED = 2, 3
DEMO, DEMO_REPORT = "wire", Path("out") / "demo"
SHOWN, LENT = 8.0, 60.0
"""Seconds of the demo in which a simulated hand shows it, and in which the user has the tool after that."""
LOADING = "loading; the first time, compiling the servo"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; status 0, 1 for what does not hold, 2 for bad input, 3 for a failed run or program."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except KeyboardInterrupt:
        print("palpo: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # what reads our output has seen enough; Python would complain when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        print(f"palpo: {account(error)}", file=sys.stderr)
        return BAD_INPUT if is_refusal(error) else FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="palpo", description="Feel deformable bodies: a stiff tool at 1 kHz, soft bodies at 50 Hz."
    )
    parser.set_defaults(command=_launch, headless=False, lock_step=False)
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", description="without one: choose a scene in a window"
    )

    run = commands.add_parser("run", help="run a scene")
    run.add_argument("scene", metavar="SCENE", help="a name that `palpo scenes` lists, or a TOML file")
    run.add_argument("--device", default="auto",
                     help="auto, or one of those that `palpo devices` lists")  # fmt: skip
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

    scenes = commands.add_parser("scenes", help="list the scenes that come with the program")
    scenes.add_argument("--schema", action="store_true", help="print the JSON schema of a scene file")
    scenes.set_defaults(command=_scenes)

    ahead = commands.add_parser("compile", help="compile now what a first start would compile")
    ahead.add_argument("system", nargs="*", metavar="SYSTEM", help="multirate, hapco, snap or suction; all")
    ahead.set_defaults(command=_compile)

    commands.add_parser("devices", help="list the devices").set_defaults(command=_devices)
    doctor = commands.add_parser("doctor", help="say what this machine can do, and what to do about the rest")
    doctor.add_argument("--device", metavar="DEVICE", help="examine this device, step by step")
    doctor.add_argument("--json", type=Path, metavar="FILE", help="write the findings to this file")
    doctor.set_defaults(command=_doctor)

    study = commands.add_parser("study", help="recompute a paper's table or figure")
    study.add_argument("name", nargs="?", metavar="NAME", help="without it, list the studies")
    study.add_argument("--out", type=Path, metavar="DIR", help="default: out/study-NAME")
    study.add_argument("--quick", action="store_true", help="coarser and shorter")
    study.set_defaults(command=_study)

    add_lift(commands.add_parser("lift", help="what a suction cup holds of a load, and its law for others"))

    solve = commands.add_parser("solve", help="solve a contact problem from a file")
    solve.add_argument("file", type=Path, metavar="FILE",
                       help="FCLIB (.hdf5, .h5) or .npz with W, q, mu; a folder for --profile")  # fmt: skip
    solve.add_argument("--profile", action="store_true", help="all solvers over all problems of a folder")
    solve.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="options",
                       help="an option of the solver; may be repeated")  # fmt: skip
    solve.add_argument("--guess", type=Path, metavar="FILE",
                       help="start from this force: FCLIB's `solution`, or r of an .npz file")  # fmt: skip
    solve.add_argument("--solver", action="append", default=[], metavar="NAME",
                       help="a solver's name, or all; may be repeated (default: the best one)")  # fmt: skip
    solve.add_argument("--tol", type=float, default=1e-8, metavar="T",
                       help="relative natural-map residual (default 1e-8)")  # fmt: skip
    solve.add_argument("--max-iterations", type=int, default=20_000, metavar="N",
                       help="in each solver's own unit (default 20000)")  # fmt: skip
    solve.add_argument(
        "--time-cap", type=float, default=math.inf, metavar="S", help="seconds a solve may take"
    )
    solve.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    solve.add_argument("--out", type=Path, metavar="FILE",
                       help="forces by solver, velocities, statuses and history in an .npz file; the first"
                       " solver's in FCLIB's group `solution` if it ends in .hdf5; with --profile a folder"
                       " (default: out/profile)")  # fmt: skip
    solve.set_defaults(command=_solve)

    sweep = commands.add_parser("sweep", help="run a scene over a grid of its keys, on several processes")
    sweep.add_argument("scene", metavar="SCENE", help="a name that `palpo scenes` lists, or a TOML file")
    sweep.add_argument("--param", action="append", required=True, metavar="KEY=A:B:N", dest="params",
                       help="N values from A to B, or a,b,c; may be repeated")  # fmt: skip
    sweep.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                       help="change a key of the scene in all runs; may be repeated")  # fmt: skip
    sweep.add_argument("--device", default="mock", help="mock or replay:FILE")
    sweep.add_argument("--duration", type=float, metavar="S", help="seconds of each run")
    where = sweep.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=int, default=1, metavar="N", help="processes on this machine (1)")
    where.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, such as tcp://host:8786")
    sweep.add_argument("--out", type=Path, metavar="FILE",
                       help="the table, .parquet or .csv (default: out/sweep-SCENE.parquet)")  # fmt: skip
    sweep.set_defaults(command=_sweep)

    snap = commands.add_parser("snap", help="design a snap connector: forces, loads, sweeps, yield")
    snap.add_argument("scene", metavar="SCENE", nargs="+",
                      help="a snap scene, of a generator or of files; several are compared")  # fmt: skip
    snap.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                      help="change a key of the scene; may be repeated")  # fmt: skip
    snap.add_argument("--param", action="append", default=[], metavar="KEY=A:B:N", dest="params",
                      help="N values from A to B, or a,b,c: curves for one, maps for two")  # fmt: skip
    snap.add_argument("--tolerance", action="append", default=[], metavar="KEY=W", dest="tolerances",
                      help="a key in which parts differ, by three deviations or 10%%")  # fmt: skip
    snap.add_argument("--runs", type=int, default=100, metavar="N", help="parts that are drawn (100)")
    snap.add_argument("--seed", type=int, default=0, metavar="N", help="of the parts (0)")
    snap.add_argument("--back", type=float, metavar="M", help="how far it is pulled back [m]")
    for name, unit in (("insertion-below", "N"), ("retention-above", "N"), ("strain-below", "X"),
                       ("stress-below", "PA")):  # fmt: skip
        snap.add_argument(f"--{name}", type=float, metavar=unit, help="a limit that parts must keep to")
    snap.add_argument("--out", type=Path, metavar="DIR", help="page, pictures, tables (out/design-SCENE)")
    snap.add_argument("--export", type=Path, metavar="DIR",
                      help="only write the scene's parts as STL, and a scene that reads them")  # fmt: skip
    snap.set_defaults(command=_snap)

    bench = commands.add_parser("bench", help="time whole steps")
    bench.add_argument("name", nargs="?", metavar="NAME", help="without it, all benchmarks")
    bench.add_argument("--duration", type=float, metavar="S", help="seconds, of the soak")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    bench.set_defaults(command=_bench)
    return parser


def _outputs(command: argparse.ArgumentParser) -> None:
    command.add_argument("--report", type=Path, metavar="DIR", help="write an HTML page and its pictures")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")


def _check_outputs(options: argparse.Namespace) -> None:
    """Find out now what could not be written after the run."""
    if options.report is not None:
        check_folder(options.report, "--report")
    if options.json is not None:
        check_file(options.json, "--json")


def _launch(options: argparse.Namespace) -> int:
    progress = Progress()
    operator = _operator(options, progress)
    if operator is None:
        _parser().print_help()
        return 0
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
    wanted = session.Options(
        options.scene,
        tuple(options.overrides),
        options.device,
        options.device_name,
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
    shown = session.Options(DEMO, device="mock", duration=options.duration)
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

        return Operator(progress)
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
    with Viewer(options.file, progress, options.ghost) as viewer:
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


def _finish(options: argparse.Namespace, done: Outcome, progress: Progress) -> None:
    """Report, JSON and summary of a run or a replay."""
    from palpo.app.cli.summary import print_summary
    from palpo.app.report.outcome import peak_memory_mb, plain

    done.result["memory_mb"] = peak_memory_mb()
    if options.report is not None:
        from palpo.app.report.publish import publish

        with progress.stage("writing the report"):
            done.result["report"] = str(publish(options.report, done))
        done.result["memory_with_report_mb"] = peak_memory_mb()
    if options.json is not None:
        options.json.write_text(json.dumps(plain(done.result), indent=2) + "\n", "utf-8")
    print_summary(done.result)


def _scenes(options: argparse.Namespace) -> int:
    from palpo.config.load import json_schema, list_scenes

    if options.schema:
        print(json.dumps(json_schema(), indent=2))
        return 0
    scenes = list_scenes()
    width = max(map(len, scenes))
    for name, line in scenes.items():
        print(f"{name:<{width}}  {line}")
    return 0


def _compile(options: argparse.Namespace) -> int:
    from palpo.app.cli.compile_ahead import TICKS, compile_ahead

    chosen = options.system or list(TICKS)
    for system in chosen:
        _chosen(system, dict.fromkeys(TICKS), "system")
    progress = Progress()
    for system in chosen:
        compile_ahead(system, progress)
    return 0


def _hand(options: argparse.Namespace) -> int:
    from palpo.app.cli.hand import print_hand

    return print_hand(options.place, options.device, options.device_name, options.duration)


def _devices(options: argparse.Namespace) -> int:
    from palpo.app.cli.doctor import print_devices

    return print_devices()


def _doctor(options: argparse.Namespace) -> int:
    from palpo.app.cli.doctor import print_device, print_doctor

    if options.json is not None:
        check_file(options.json, "--json")
    if options.device is not None:
        return print_device(options.device, options.json)
    return print_doctor(options.json)


def _study(options: argparse.Namespace) -> int:
    from palpo.app.cli.registry import registry

    studies = registry("studies")
    if studies is None or options.name is None:
        _list("studies", getattr(studies, "ABOUT", {}))
        return 0
    _chosen(options.name, studies.STUDIES, "study")
    out = options.out or Path("out") / f"study-{options.name}"
    check_folder(out, "--out")
    claims = studies.run_study(options.name, out, options.quick)
    return 0 if all(claim.holds for claim in claims) else 1


def _solve(options: argparse.Namespace) -> int:
    if options.json is not None:
        check_file(options.json, "--json")
    if options.out is not None and not options.profile:
        if options.out.suffix not in (".npz", ".hdf5", ".h5"):
            raise Refusal(f"--out {options.out}: solutions are written to a file that ends in .npz or .hdf5")
        check_file(options.out, "--out")
    progress = Progress()
    with progress.stage("loading the solvers"):
        from palpo.app.cli.solve import print_solves, profile, read_options, solve_file, write_solutions
        from palpo.app.report.outcome import plain
        from palpo.physics.contact.problem import Stop

    stop, chosen = Stop(options.tol, options.max_iterations, options.time_cap), read_options(options.options)
    if options.profile:
        return profile(options, stop, chosen, progress)
    summary, solved = solve_file(options.file, options.solver, stop, progress, chosen, options.guess)
    if options.json is not None:
        options.json.write_text(json.dumps(plain(summary), indent=2) + "\n", "utf-8")
    if options.out is not None:
        write_solutions(options.out, solved)
    print_solves(summary)
    return int(summary["exit_status"])


def _sweep(options: argparse.Namespace) -> int:
    from palpo.app.cli.sweep import Sweep, axis_of, run_sweep

    if options.jobs < 1:
        raise Refusal(f"--jobs {options.jobs}: give at least one process")
    axes = tuple(axis_of(text) for text in options.params)
    sweep = Sweep(options.scene, axes, tuple(options.overrides), options.device, options.duration)
    out = options.out or Path("out") / f"sweep-{Path(options.scene).stem}.parquet"
    rows = run_sweep(sweep, out, options.jobs, options.scheduler)
    failed = [row for row in rows if row["exit_status"]]
    print(f"{len(rows)} runs, {len(failed)} of them failed: {out}")
    for row in failed[:10]:
        print("  " + ", ".join(f"{axis.key}={row[axis.key]}" for axis in axes) + f": {row['exit_reason']}")
    return FAILED if failed else 0


def _snap(options: argparse.Namespace) -> int:
    first = options.scene[0]
    out = options.export or options.out or Path("out") / f"design-{Path(first).stem}"
    check_folder(out, "--out" if options.export is None else "--export")
    progress = Progress()
    with progress.stage("loading"):
        from palpo.app.cli import design
        from palpo.app.report.design_export import export
        from palpo.app.report.design_figures import about_mesh
        from palpo.app.report.design_page import said, write_design
    if options.export is not None:
        print(f"the parts are in {export(first, options.overrides, out)}")
        return 0
    limits = design.Limits(
        options.insertion_below, options.retention_above, options.strain_below, options.stress_below
    )
    asked = design.Design(
        first, tuple(options.overrides), design.axes_of(options.scene, options.params),
        tuple(options.tolerances), options.runs, options.seed, options.back, limits,
    )  # fmt: skip
    found = design.investigate(asked, progress)
    share = design.share_of(found.parts) if found.parts else None
    page = write_design(out, found, share)
    design.print_found(found)
    print(f"socket: {about_mesh(found.travel)}")
    if share is not None:
        print(said(share, len(found.parts)))
    print(f"the page is {page}")
    return 0


def _bench(options: argparse.Namespace) -> int:
    from palpo.app.cli.registry import registry, summary_of

    if options.json is not None:
        check_file(options.json, "--json")
    table = registry("benchmarks")
    benches = getattr(table, "BENCHES", {})
    chosen = benches if options.name is None else {options.name: _chosen(options.name, benches, "benchmark")}
    if not chosen:
        _list("benchmarks", {})
        return 0
    asked: dict[str, float] = {}
    if options.duration is not None:
        if options.name != "soak" or not options.duration > 0.0:
            raise Refusal(f"--duration {options.duration:g}: only the soak takes a time, a positive one")
        asked["duration"] = options.duration
    progress, results = Progress(), {}
    for name, bench in chosen.items():
        with progress.stage(f"{name}: {summary_of(bench)}"):
            results[name] = bench(**asked)
    from palpo.app.report.outcome import plain

    if options.json is not None:
        options.json.write_text(json.dumps(plain(results), indent=2) + "\n", "utf-8")
    table.print_bench(results)
    return 0


def _chosen(name: str, known: dict[str, Any], what: str) -> Any:
    if name not in known:
        there = ", ".join(known) or "none in this version"
        raise Refusal(f"{name}: there is no such {what}; there are: {there}")
    return known[name]


def _list(what: str, lines: dict[str, str]) -> None:
    if not lines:
        print(f"this version has no {what}")
        return
    width = max(map(len, lines))
    for name, line in lines.items():
        print(f"{name:<{width}}  {line}")


if __name__ == "__main__":
    sys.exit(main())
