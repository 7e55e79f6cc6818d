"""The command line refuses what it cannot do: one sentence, status 2, before anything is computed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from palpo.app.cli import main as cli
from palpo.app.cli.main import main
from palpo.app.cli.refusal import account
from palpo.app.runtime.slow_thread import SlowThread
from palpo.config.words import Refusal

ROOT = Path(__file__).resolve().parents[2]


def refusal(capsys, *arguments):
    """The sentence on standard error of a command that must be refused."""
    assert main(arguments) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("palpo: ")
    assert "Traceback" not in said
    return said


def test_scenes_are_listed_with_a_line_each(capsys):
    assert main(["scenes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} >= {"beams", "wire", "needle", "probe"}
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


def test_the_schema_is_json(capsys):
    assert main(["scenes", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    of_systems = {one["$ref"].rpartition("/")[2] for one in schema["anyOf"]}
    assert of_systems == {"SceneSpec", "HapcoScene", "SnapScene", "SuctionScene"} <= set(schema["$defs"])
    assert "bodies" in schema["$defs"]["SceneSpec"]["properties"]


def test_listing_scenes_needs_no_compiler():
    code = (
        "import sys; from palpo.app.cli.main import main; main(['scenes']); assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


def test_devices_and_studies_are_listed(capsys):
    assert main(["devices"]) == 0
    assert "replay:FILE" in capsys.readouterr().out
    assert main(["study"]) == 0
    assert "multirate-beams" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nosuch"], ("nosuch", "probe")),
        (["run", "probe", "--set", "rates.low_hz=300"], ("low_hz", "300")),
        (["run", "probe", "--set", "bodies.block.placement.where=1"], ("where",)),
        (["run", "probe", "--device", "glove"], ("glove", "replay:FILE")),
        (["run", "probe", "--device", "replay:/no/such.csv"], ("/no/such.csv",)),
        (["run", "probe", "--duration", "-1"], ("--duration", "-1")),
        (["run", "probe", "--interface", "magic"], ("magic", "krylov")),
        (["run", "probe", "--interface", "monolithic"], ("--lock-step",)),
        (["run", "probe", "--set", "bodies.block.fixed=[{box=[[1,1,1],[2,2,2]]}]"], ("fixes nothing",)),
        (["replay", "/no/such.h5"], ("/no/such.h5",)),
        (["study", "nosuch"], ("nosuch", "multirate-beams")),
        (["bench", "nosuch"], ("nosuch",)),
    ],
)
def test_what_cannot_be_done_is_one_sentence(capsys, arguments, words):
    said = refusal(capsys, *arguments)
    assert all(word in said for word in words), said


@pytest.mark.parametrize("option", ["--report", "--record", "--json"])
def test_an_output_that_cannot_be_written_is_found_before_the_run(capsys, tmp_path, option):
    (tmp_path / "file").write_text("in the way")
    said = refusal(capsys, "run", "probe", option, str(tmp_path / "file" / "out"))
    assert option in said
    assert "file/out" in said


def test_a_recording_without_a_run_is_refused(capsys, tmp_path):
    from palpo.haptics.recording import Recorder

    with Recorder(tmp_path / "empty.h5", {}):
        pass
    assert "empty.h5" in refusal(capsys, "replay", str(tmp_path / "empty.h5"))


def test_a_short_run_writes_json_and_report(capsys, tmp_path):
    where = ["--report", str(tmp_path / "page"), "--json", str(tmp_path / "run.json")]
    assert main(["run", "probe", "--lock-step", "--duration", "0.1", *where]) == 0
    result = json.loads((tmp_path / "run.json").read_text())
    assert result["exit_status"] == 0
    assert result["servo"]["steps"] >= 100
    assert (tmp_path / "page" / "report.html").stat().st_size > 10_000
    assert "finished" in capsys.readouterr().out


def test_an_interrupted_run_fades_and_ends_in_order(tmp_path):
    out = tmp_path / "run.json"
    command = [sys.executable, "-m", "palpo", "run", "beams", "--device", "mock"]
    command += ["--duration", "600", "--json", str(out)]
    process = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=os.environ,
        # a test run in the background of a shell is born deaf to SIGINT, and so would be its children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("first tick"):
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(30.0) == 130
    result = json.loads(out.read_text())
    assert result["exit_reason"] == "interrupted"
    assert result["servo"]["stop_reason"] == "stop requested"


def kept_trace(said):
    """What the file holds that the sentence on an error of the program names."""
    path = Path(said.rpartition("the trace is in ")[2])
    text = path.read_text("utf-8")
    path.unlink()
    return text


def test_an_unexpected_exception_is_told_as_an_error_of_the_program_and_leaves_its_trace(capsys, monkeypatch):
    monkeypatch.setattr(cli, "_scenes", lambda options: [][-1])
    assert main(["scenes"]) == cli.FAILED
    said = capsys.readouterr().err.strip()
    assert "\n" not in said
    assert said.startswith(
        "palpo: an error of the program: IndexError: list index out of range; the trace is in "
    )
    assert kept_trace(said).strip().endswith("IndexError: list index out of range")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Refusal("give a\n folder"), "give a folder"),
        (FileNotFoundError(2, "No such file or directory", "x.h5"), "x.h5"),
        (FloatingPointError('body "liver" is not finite'), 'body "liver" is not finite'),
        (RuntimeError("it fell behind"), "it fell behind"),
    ],
)
def test_bad_input_and_a_state_that_cannot_go_on_speak_for_themselves(error, told):
    assert told in account(error)
    assert "error of the program" not in account(error)


@pytest.mark.parametrize(
    "error", [KeyError("head"), NotImplementedError(), RuntimeError(), RecursionError("deep")]
)
def test_whatever_has_no_words_for_the_user_is_an_error_of_the_program(error):
    said = account(error)
    assert said.startswith(f"an error of the program: {type(error).__name__}")
    assert type(error).__name__ in kept_trace(said)


def test_an_unexpected_exception_of_the_slow_loop_is_told_as_one():
    loop = SlowThread.__new__(SlowThread)
    loop.failure, loop._stepping = "", threading.Lock()
    assert not loop._guarded(lambda: [][-1])
    assert loop.failure.startswith("the slow loop stopped: an error of the program: IndexError")
    assert "_guarded" in kept_trace(loop.failure)
