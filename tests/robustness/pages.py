"""A page without a browser: it speaks viser's words over a websocket, and others."""

from __future__ import annotations

import http.client

import msgspec

CAMERA = {
    "type": "ViewerCameraMessage", "wxyz": [1.0, 0.0, 0.0, 0.0], "position": [0.0, 1.0, 4.0], "fov": 0.5,
    "near": 0.01, "far": 1000.0, "image_height": 800, "image_width": 1000, "look_at": [0.0, 0.0, 0.0],
    "up_direction": [0.0, 1.0, 0.0],
}  # fmt: skip


def drag(phase, x, y, **news):
    """A drag of the ball to this place, in shares of the picture."""
    return {
        "type": "SceneNodeDragMessage", "phase": phase, "name": "/hand", "instance_index": None,
        "start_position": [0.0, 0.0, 0.0], "start_screen_pos": [0.5, 0.5], "end_position": [0.0, 0.0, 0.0],
        "end_screen_pos": [x, y], "button": "left", "modifier": None, "owner": "",
    } | news  # fmt: skip


def packed(message):
    """As it is sent."""
    return msgspec.msgpack.encode(message)


def open_page(server, token=None, **headers):
    """A connection, with the token of who leads unless another is given."""
    import viser
    from websockets.sync.client import connect

    address = f"ws://127.0.0.1:{server.port}/{server.tokens['lead'] if token is None else token}"
    return connect(
        address, subprotocols=[f"viser-v{viser.__version__}"], additional_headers=headers, max_size=None,
        open_timeout=5, close_timeout=1, proxy=None,
    )  # fmt: skip


def asked(server, path, **headers):
    """Status and body of a plain request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()
