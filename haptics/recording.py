"""Recordings: each servo row, the slow steps and the events of a run, in an HDF5 file that survives a crash.

The servo leaves rows in its ring; a background thread takes them out and appends them, one dataset a column,
in HDF5's single-writer-multiple-reader mode, whose ordered writes keep the file readable at every instant:
after kill -9 it opens and is complete up to the last flush (some tools ask for `h5clear -s` first;
`read_recording` does not).

HDF5 does not survive a failed write: the library crashes the process when it is closed afterwards. So room is
claimed from the file system before each batch (posix_fallocate, where there is one), and a disk that is
full, or a quota or size limit that is reached, shows there, harmlessly: recording stops, the file is closed
in order, and `error` says so.
"""

import json
import os
import shutil
import struct
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from palpo.haptics.drain import drain_rows
from palpo.haptics.errors import HapticsError
from palpo.haptics.row import COLUMNS, Column
from palpo.haptics.servo import Servo
from palpo.physics.numerics.stored import check_hdf5

FORMAT = "palpo recording 2"
EARLIER = "palpo recording 1"
"""Of a version that let the force change faster and told success by another number: it can be read, and its
hand be followed, but its forces are not those of today."""
FLUSH_SECONDS = 0.25
BATCH = 1024
"""Rows written between two claims of room; also the chunk of every dataset."""
ROOM = 4 << 20
"""Bytes claimed ahead of a batch: four times what a batch of all columns and its index can take."""
EVENT_BYTES = 240
EVENT_COLUMNS = (
    Column("tick", "1", "servo tick of the event", "i8"),
    Column("text", "", "what happened, UTF-8", f"S{EVENT_BYTES}"),
)
CHANGE_COLUMNS = (
    Column("step", "1", "slow step before which the change was made", "i8"),
    Column("text", "", "key=value, in the scene's keys, UTF-8", f"S{EVENT_BYTES}"),
)


class Recorder:
    """Writes a recording; `start` drains a servo in the background, `drain` does so at once for lock-step.

    error: None, or one sentence on why recording stopped. rows_written: servo rows in the file.
    """

    def __init__(
        self,
        path: str | Path,
        meta: Mapping[str, Any],
        columns: Sequence[Column] = COLUMNS,
        low_columns: Sequence[Column] = (),
    ) -> None:
        """Create the file; HapticsError if it cannot be, or if meta is not plain JSON."""
        self.path = Path(path)
        self.error: str | None = None
        self.rows_written = 0
        self._columns, self._low_columns = tuple(columns), tuple(low_columns)
        self._low_steps: deque[Sequence[float]] = deque()
        self._events: deque[tuple[int, bytes]] = deque()
        self._changes: deque[tuple[int, bytes]] = deque()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        try:
            text = json.dumps(dict(meta))
        except (TypeError, ValueError) as error:
            raise HapticsError(f"{path}: metadata of a recording must be plain JSON ({error})") from None
        try:
            # the descriptor claims room; HDF5 writes through its own. Windows would read text from it, which
            # the byte 0x1A, HDF5's seventh, ends
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
            self._descriptor = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise HapticsError(f"{path}: the recording cannot be written ({error.strerror})") from None
        self._claim(0)
        if self.error is not None:
            os.close(self._descriptor)
            self.path.unlink()
            raise HapticsError(self.error)
        self._file = self._create(text)
        self._open = True

    def _create(self, meta: str) -> h5py.File:
        file = h5py.File(self.path, "w", libver="latest")
        file.attrs["format"] = FORMAT
        file.attrs["meta"] = np.bytes_(meta.encode())
        for table, columns in (
            ("servo", self._columns),
            ("low_steps", self._low_columns),
            ("events", EVENT_COLUMNS),
            ("changes", CHANGE_COLUMNS),
        ):
            group = file.create_group(table)
            for column in columns:
                data = group.create_dataset(
                    column.name, (0,), column.dtype, maxshape=(None,), chunks=(BATCH,)
                )
                data.attrs["unit"] = column.unit
                data.attrs["description"] = column.description
        file.create_dataset("closed", (1,), "i8")
        # nothing may be created after this; that is what makes every later instant readable
        file.swmr_mode = True
        return file

    def start(self, servo: Servo) -> Self:
        """Drain the servo's ring in the background until `close`."""
        self._thread = threading.Thread(target=self._run, args=(servo,), name="recorder", daemon=True)
        self._thread.start()
        return self

    def _run(self, servo: Servo) -> None:
        while not self._stop.wait(FLUSH_SECONDS) and self.error is None:
            self.drain(servo)
        self.drain(servo)

    def drain(self, servo: Servo) -> None:
        """Write and flush what the servo's ring, the slow steps and the events hold."""
        if self.error is None:
            self.write(drain_rows(servo))

    def write(self, rows: NDArray[np.float64]) -> None:
        """Write rows (n, len(columns)) that somebody else drained, with the slow steps and events so far."""
        for first in range(0, max(len(rows), 1), BATCH):
            self._write(rows[first : first + BATCH])

    def append_low_step(self, values: Sequence[float]) -> None:
        """Add a row to `low_steps`, in the order of its columns; written at the next flush."""
        if len(values) != len(self._low_columns):
            raise HapticsError(f"a slow step has {len(values)} values and must have {len(self._low_columns)}")
        self._queue(self._low_steps, tuple(values))

    def append_event(self, tick: int, text: str) -> None:
        """Add an event; text beyond 240 bytes is cut. Written at the next flush."""
        self._queue(self._events, (tick, _cut(text)))

    def append_change(self, step: int, text: str) -> None:
        """Add an operator's change "key=value", made before this slow step. Written at the next flush."""
        self._queue(self._changes, (step, _cut(text)))

    def _queue(self, queue: deque[Any], row: Any) -> None:
        """Keep a row for the next flush; once recording has stopped nobody would take it."""
        if self.error is None:
            queue.append(row)

    def _write(self, rows: NDArray[np.float64]) -> None:
        """Append one batch and what the queues hold, then flush; sets `error` instead of raising."""
        if self.error is None:
            self._claim(self._file.id.get_filesize())
        if self.error is not None:
            return
        try:
            self._append("servo", self._columns, list(rows.T))
            for table, columns, queue in (
                ("low_steps", self._low_columns, self._low_steps),
                ("events", EVENT_COLUMNS, self._events),
                ("changes", CHANGE_COLUMNS, self._changes),
            ):
                taken = [queue.popleft() for _ in range(min(len(queue), BATCH))]
                if taken:
                    self._append(table, columns, list(zip(*taken, strict=True)))
            self._file.flush()
        except (OSError, RuntimeError) as error:
            self.error = f"{self.path}: recording stopped, the file could not be written ({error})"
            return
        self.rows_written += len(rows)

    def _append(self, table: str, columns: Sequence[Column], values: Sequence[Any]) -> None:
        n = len(values[0])
        if n == 0:
            return
        for column, value in zip(columns, values, strict=True):
            data = self._file[table][column.name]
            old = data.shape[0]
            data.resize((old + n,))
            data[old:] = np.asarray(value).astype(column.dtype)

    def _claim(self, used: int) -> None:
        """Make sure that ROOM bytes beyond those used can be written; sets `error` if not."""
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._descriptor, 0, used + ROOM)
            elif shutil.disk_usage(self.path).free < ROOM:
                raise OSError(0, "No space left on device")
        except OSError as error:
            self.error = (
                f"{self.path}: recording stopped after {self.rows_written} rows, "
                f"no room for more ({error.strerror}); what was written is kept"
            )

    def close(self) -> None:
        """Drain what is left, close the file in order and give back the room that was not used."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if not self._open:
            return
        self._open = False
        if self.error is None:
            self._write(np.empty((0, len(self._columns))))
        try:
            self._file["closed"][0] = 1
            self._file.close()
            _give_back(self._descriptor)
        except (OSError, RuntimeError) as error:
            self.error = self.error or f"{self.path}: the recording could not be closed ({error})"
        finally:
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _cut(text: str) -> bytes:
    """As much of the text as fits, whole characters only."""
    return text.encode()[:EVENT_BYTES].decode(errors="ignore").encode()


def _give_back(descriptor: int) -> None:
    """Cut the file at the end that its superblock (version 2 and 3, 8-byte addresses) names at byte 28."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    superblock = os.read(descriptor, 36)
    if len(superblock) == 36 and superblock[8] in (2, 3) and superblock[9] == 8:
        os.ftruncate(descriptor, struct.unpack("<Q", superblock[28:36])[0])


class Table(dict[str, NDArray]):
    """Columns by name; one that somebody needs and the file lacks is a HapticsError with its name."""

    def __init__(self, path: str | Path, table: Mapping[str, NDArray]) -> None:
        super().__init__(table)
        self.path = path

    def __missing__(self, name: str) -> NDArray:
        raise HapticsError(
            f"{self.path}: the recording has no column {name}, without which it cannot be used"
        )

    def within(self, name: str, low: float, high: float) -> NDArray:
        """A column whose values are within these bounds; raises HapticsError with the first that is not."""
        values = self[name]
        # not a number is within no bounds
        off = np.flatnonzero(~((values >= low) & (values <= high)))
        if len(off):
            raise HapticsError(
                f"{self.path}: row {off[0]} of column {name} is {values[off[0]]}; "
                f"it must be from {low:g} to {high:g}"
            )
        return values


@dataclass(frozen=True)
class Recording:
    """A recording read back whole."""

    meta: dict[str, Any]
    columns: Table
    """Servo columns by name, all of one length."""
    units: dict[str, str]
    low_steps: Table
    events: list[tuple[int, str]]
    changes: list[tuple[int, str]]
    """Slow step and "key=value" of what the operator changed."""
    closed: bool
    """False if the program ended before it could close the file; the rows are those of the last flush."""
    earlier: bool = False
    """Whether a version of the program wrote it whose forces were limited otherwise."""


def read_recording(path: str | Path) -> Recording:
    """Read a recording, also one that was never closed or is still being written.

    Raises HapticsError if there is no such file or it is not a recording.
    """
    if not Path(path).is_file():
        raise HapticsError(f"{path}: no such recording")
    try:
        with _opened(path) as file:
            written = file.attrs.get("format")
            if written not in (FORMAT, EARLIER):
                raise HapticsError(f"{path}: an HDF5 file, but not a recording of this program")
            check_hdf5(file)
            return Recording(
                meta=_read_meta(file),
                columns=Table(path, _read_table(file["servo"], "biuf")),
                units={name: data.attrs["unit"] for name, data in file["servo"].items()},
                low_steps=Table(path, _read_table(file["low_steps"], "biuf")),
                events=_read_texts(file["events"], "tick"),
                changes=_read_texts(file["changes"], "step"),
                closed=bool(file["closed"][0]),
                earlier=written == EARLIER,
            )
    except HapticsError:
        raise
    # h5py reports damage as OSError, KeyError, ValueError and more, by where it strikes
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise HapticsError(f"{path}: not a readable recording ({reason})") from None


def _opened(path: str | Path) -> h5py.File:
    """The file for reading; as one that is being written only if it is marked so, or locked.

    Then the library reads what does not fit its checksum again and again, as it may be half written: a
    damaged file that was closed would keep it busy for minutes.
    """
    try:
        return h5py.File(path, "r")
    except OSError as error:
        if not any(word in str(error) for word in ("already open", "unable to lock")):
            raise
        return h5py.File(path, "r", libver="latest", swmr=True)


def _read_meta(file: h5py.File) -> dict[str, Any]:
    meta = json.loads(bytes(file.attrs["meta"]).decode())
    if not isinstance(meta, dict):
        raise ValueError("what it says of its run has no names")
    return meta


def _read_table(group: h5py.Group, kinds: str = "biufS") -> dict[str, NDArray]:
    """Columns cut to the shortest: a flush that was interrupted leaves some a batch ahead.

    kinds: of NumPy's types, those that a column may have.
    """
    if len(group) == 0:
        return {}
    for name, data in group.items():
        if data.ndim != 1 or data.dtype.kind not in kinds:
            raise ValueError(f"{name} is no column of numbers{' or words' if 'S' in kinds else ''}")
    n = min(data.shape[0] for data in group.values())
    return {name: data[:n] for name, data in group.items()}


def _read_texts(group: h5py.Group, number: str) -> list[tuple[int, str]]:
    table = _read_table(group)
    return [(int(n), text.decode()) for n, text in zip(table[number], table["text"], strict=True)]
