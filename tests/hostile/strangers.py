"""What strangers do to a port: each act takes (host, port, random, held) and says in a word what became of it. `held` has the
connections that stay open; the caller closes them later."""

import functools
import struct

from zmtp import COMMAND, LONG, Stranger, garbage, greeting, part

MIB = 1 << 20
ACTS = []


def act(deed):
    """Makes an act of what a stranger does on a connection of its own; one that "holds" stays open."""

    @functools.wraps(deed)
    def on_its_own_connection(host, port, random, held):
        try:
            stranger = Stranger(host, port)
        except OSError:
            return "not let in"
        outcome = deed(stranger, random)
        if outcome == "holds":
            held.append(stranger)
        else:
            stranger.close()
        return outcome

    ACTS.append(on_its_own_connection)
    return on_its_own_connection


@act
def says_garbage(stranger, random):
    stranger.send(garbage(random.randrange(1, 5000)))
    return "sent"


@act
def says_nothing(stranger, random):
    if random.random() < 0.5:
        stranger.send(greeting()[: random.randrange(64)])
    return "holds"


@act
def shakes_hands_only(stranger, random):
    return "holds" if stranger.greet() else "refused"


@act
def never_ends(stranger, random):
    """Empty parts with MORE, and never a last one."""
    if not stranger.greet():
        return "refused"
    block = part(b"", more=True) * 65536
    sent = 0
    while sent < 200 * MIB and stranger.send(block):
        sent += len(block)
    return "cut" if sent < 200 * MIB else "swallowed"


@act
def announces_much(stranger, random):
    """A size of up to 2^64 - 1, and some bytes of it."""
    stranger.greet()
    size = random.choice([MIB, 2**31, 2**32 + 1, 2**63, 2**64 - 1])
    stranger.send(bytes([LONG | random.choice([0, 1, COMMAND])]) + struct.pack(">Q", size) + garbage(1000))
    return "sent"


@act
def large_command(stranger, random):
    """A handshake command as large as may be, less its last byte."""
    stranger.send(greeting(random.choice([b"NULL", b"CURVE"])))
    stranger.read(64)
    stranger.send(bytes([COMMAND | LONG]) + struct.pack(">Q", MIB - 1) + bytes(MIB - 2))
    return "holds"


@act
def talks_nonsense(stranger, random):
    """Whole messages of random bytes."""
    if not stranger.greet():
        return "refused"
    for _ in range(random.randrange(1, 200)):
        if not stranger.send(part(garbage(random.randrange(0, 2000)))):
            break
    return "sent"
