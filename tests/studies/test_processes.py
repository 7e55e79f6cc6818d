"""Processes of a study: none outlives it."""

import socket
import subprocess
import sys

import pytest

STUDY = """
import socket
import sys
from palpo.studies.processes import processes


def work_for_hours(port):
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"at work")
        while True:
            line.recv(1)


if __name__ == "__main__":
    with processes(1) as pool:
        pool.submit(work_for_hours, int(sys.argv[1])).result()
"""


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_the_processes_of_a_study_that_is_killed_end_with_it(end: str, tmp_path) -> None:
    script = tmp_path / "study.py"
    script.write_text(STUDY)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60.0)
        command = [sys.executable, str(script), str(server.getsockname()[1])]
        with subprocess.Popen(command) as study:
            line, _ = server.accept()
            with line:
                assert line.recv(7) == b"at work"
                getattr(study, end)()
                line.settimeout(60.0)
                # a process that ends closes its side; one that goes on says nothing
                assert line.recv(1) == b""
