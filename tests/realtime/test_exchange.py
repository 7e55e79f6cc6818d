"""Laws of the exchange: frames arrive whole and in order, rows arrive all, in order, or are counted."""

import threading

import numpy as np
import pytest
from numba import cfunc, njit, typeof, types

from palpo.physics.exchange.atomics import CACHE_LINE, call_tick, load_acquire, store_release
from palpo.physics.exchange.buffer import (
    SLOTS,
    acquire,
    make_control,
    make_ring,
    publish,
    published_count,
    ring_available,
    ring_commit,
    ring_overflow,
    ring_push_slot,
    ring_release,
    ring_slot,
    taken_count,
    writer_slot,
)
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import make_port
from palpo.physics.numerics.errors import InputError

WIDTH = 64
PUBLICATIONS = 10_000_000
ROWS = 1_000_000


@njit(nogil=True, cache=True)
def write_frames(frames, control, done, n):
    """Frame k holds k, k + 1, ... and their sum, so that a mixture of two frames shows."""
    for k in range(1, n + 1):
        frame = frames[writer_slot(control)]
        total = 0.0
        for j in range(WIDTH - 1):
            frame[j] = k + j
            total += frame[j]
        frame[WIDTH - 1] = total
        publish(control)
    store_release(done, 0, 1)


@njit(nogil=True, cache=True)
def read_frames(frames, control, done):
    """(taken, torn, back in time, last): the reader's verdict over all the frames that it took."""
    taken, torn, backwards, last = 0, 0, 0, 0.0
    while True:
        finished = load_acquire(done, 0)
        slot, fresh = acquire(control)
        if fresh:
            frame = frames[slot]
            total = 0.0
            whole = True
            for j in range(WIDTH - 1):
                total += frame[j]
                whole &= frame[j] == frame[0] + j
            taken += 1
            torn += not (whole and total == frame[WIDTH - 1])
            backwards += frame[0] <= last
            last = frame[0]
        elif finished:
            return taken, torn, backwards, last


def test_ten_million_publications_between_two_threads_never_tear_nor_go_back_in_time():
    frames, control, done = (
        np.zeros((SLOTS, WIDTH)),
        make_control(),
        np.zeros(CACHE_LINE, dtype=np.int64),
    )
    verdict = []
    writer = threading.Thread(target=write_frames, args=(frames, control, done, PUBLICATIONS))
    reader = threading.Thread(target=lambda: verdict.append(read_frames(frames, control, done)))
    reader.start()
    writer.start()
    writer.join()
    reader.join()
    taken, torn, backwards, last = verdict[0]
    assert (torn, backwards, last) == (0, 0, PUBLICATIONS)
    assert taken == taken_count(control) > 0
    assert published_count(control) == PUBLICATIONS


def test_the_reader_gets_the_newest_frame_once_and_keeps_it():
    data, control = np.zeros(SLOTS), make_control()
    assert acquire(control)[1] is False
    for value in (1.0, 2.0, 3.0):
        data[writer_slot(control)] = value
        publish(control)
    slot, fresh = acquire(control)
    assert fresh and data[slot] == 3.0
    data[writer_slot(control)] = 4.0
    assert acquire(control) == (slot, False) and data[slot] == 3.0


@njit(nogil=True, cache=True)
def produce(rows, ring, done, n):
    """Push n numbered rows, again and again until each is taken, and return the refusals seen."""
    refused = 0
    for k in range(n):
        slot = ring_push_slot(ring)
        while slot < 0:
            refused += 1
            slot = ring_push_slot(ring)
        rows[slot, 0] = k
        rows[slot, 1] = -k
        ring_commit(ring)
    store_release(done, 0, 1)
    return refused


@njit(nogil=True, cache=True)
def consume(rows, ring, done):
    """(received, wrong): rows received, and those out of order or half written."""
    received, wrong = 0, 0
    while True:
        finished = load_acquire(done, 0)
        n = ring_available(ring)
        for i in range(n):
            row = rows[ring_slot(ring, i)]
            wrong += row[0] != received or row[1] != -received
            received += 1
        ring_release(ring, n)
        if finished and n == 0:
            return received, wrong


def test_every_row_of_the_ring_arrives_once_in_order_and_every_refusal_is_counted():
    rows, ring, done = (
        np.zeros((1024, 2)),
        make_ring(1024),
        np.zeros(CACHE_LINE, dtype=np.int64),
    )
    verdict, refused = [], []
    threads = [
        threading.Thread(target=lambda: verdict.append(consume(rows, ring, done))),
        threading.Thread(target=lambda: refused.append(produce(rows, ring, done, ROWS))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdict == [(ROWS, 0)]
    assert ring_overflow(ring) == refused[0]


def test_a_full_ring_drops_the_newest_row_and_counts_it():
    ring = make_ring(4)
    slots = []
    for _ in range(6):
        slot = ring_push_slot(ring)
        slots.append(slot)
        if slot >= 0:
            ring_commit(ring)
    assert slots == [0, 1, 2, 3, -1, -1]
    assert (ring_available(ring), ring_overflow(ring)) == (4, 2)
    ring_release(ring, 1)
    assert ring_push_slot(ring) == 0 and ring_slot(ring, 0) == 1


@pytest.mark.parametrize("capacity", [0, 3, -4])
def test_a_ring_capacity_that_is_no_power_of_two_is_refused(capacity):
    with pytest.raises(InputError, match="power of two"):
        make_ring(capacity)


@cfunc(types.int32(HandleType(typeof(make_port()))), cache=True)
def double_into_force(port):
    for i in range(3):
        port.force[i] = 2.0 * port.position[i]
    port.status[0].frame = 42
    return np.int32(7)


@njit(nogil=True, cache=True)
def call(address, data):
    return call_tick(address, data)


def test_a_c_function_reads_and_writes_the_port_by_address():
    port = make_port()
    data = Handle(port)
    port.position[:] = 1.0, 2.0, 3.0
    assert call(double_into_force.address, data.address) == 7
    assert port.force.tolist() == [2.0, 4.0, 6.0]
    assert port.status["frame"][0] == 42
