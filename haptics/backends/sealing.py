"""Datagrams that only who has the key can make or read, sealed and opened by compiled calls of libsodium.

ChaCha20-Poly1305 of RFC 8439 by PyNaCl's library (`pip install 'palpo[remote]'`): its functions allocate
nothing and take no lock, so that the servo may call them. Each direction of each session has a key of its
own, and a datagram's count, which is never used twice, is its nonce; it stands before what is sealed, which
authenticates it.
"""

import hashlib
import hmac
import secrets

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from palpo.haptics.backends.foreign import BYTES, I32, I64, invoke
from palpo.haptics.errors import HapticsError

TAG = 16
"""Bytes by which a datagram is longer than its count and what is sealed."""
NONCE, KEY = 12, 32
SHORTEST = 16
"""Letters of a key that somebody chose."""
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""32 letters that are not taken for each other."""


@intrinsic
def seal(typing_context, address, out, size, plain, nonce, key):
    """Call libsodium's ..._encrypt: all but size are addresses, out has TAG bytes more; 0 if well."""

    def codegen(context, builder, signature, args):
        function, out, size, plain, nonce, key = args
        nothing, none = ir.Constant(I64, 0), ir.Constant(BYTES, None)
        out, plain, nonce, key = (builder.inttoptr(a, BYTES) for a in (out, plain, nonce, key))
        arguments = [out, none, plain, size, none, nothing, none, nonce, key]
        return builder.sext(invoke(builder, function, I32, arguments), I64)

    return types.int64(*[types.int64] * 6), codegen


@intrinsic
def unseal(typing_context, address, out, size, sealed, nonce, key):
    """Call libsodium's ..._decrypt: size counts what is sealed; not 0 where it was made without the key."""

    def codegen(context, builder, signature, args):
        function, out, size, sealed, nonce, key = args
        nothing, none = ir.Constant(I64, 0), ir.Constant(BYTES, None)
        out, sealed, nonce, key = (builder.inttoptr(a, BYTES) for a in (out, sealed, nonce, key))
        arguments = [out, none, none, sealed, size, none, nothing, nonce, key]
        return builder.sext(invoke(builder, function, I32, arguments), I64)

    return types.int64(*[types.int64] * 6), codegen


def sealing_functions() -> NDArray[np.int64]:
    """Addresses of libsodium's two functions, shape (2,). Raises HapticsError where there is no PyNaCl."""
    try:
        from nacl._sodium import ffi, lib
    except ImportError:
        raise HapticsError("a remote hand needs PyNaCl: pip install 'palpo[remote]'") from None
    names = (f"crypto_aead_chacha20poly1305_ietf_{what}crypt" for what in ("en", "de"))
    return np.array([int(ffi.cast("intptr_t", ffi.addressof(lib, name))) for name in names], dtype=np.int64)


def new_key() -> str:
    """A key to tell the other end: 100 bits in 20 letters."""
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(20))
    return "-".join(letters[k : k + 5] for k in range(0, 20, 5))


def secret_of(key: str) -> bytes:
    """32 bytes of a key as people write it. Raises HapticsError for one that could be guessed."""
    if len(key.strip()) < SHORTEST:
        raise HapticsError(f"the key of a remote hand has fewer than {SHORTEST} letters; take a longer one")
    return hashlib.blake2b(key.strip().encode(), digest_size=KEY, person=b"palpo remote").digest()


def direction_key(secret: bytes, hand: bytes, scene: bytes, sender: bytes) -> NDArray[np.uint8]:
    """The key (KEY,) of what one end sends in the session of these two nonces."""
    told = hmac.digest(secret, b"session" + hand + scene + sender, "sha256")
    return np.frombuffer(told, dtype=np.uint8).copy()
