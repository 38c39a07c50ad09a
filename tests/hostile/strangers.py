"""What strangers do to a port: each act takes (host, port, random) and says in a word what became of it. Acts hold what
they opened in `held`, for whoever closes it later."""

import struct

from zmtp import COMMAND, LONG, Stranger, garbage, greeting, part

MIB = 1 << 20


def connect(host, port):
    try:
        return Stranger(host, port)
    except OSError:
        return None


def says_garbage(host, port, random, held):
    stranger = connect(host, port)
    if stranger is None:
        return "not let in"
    stranger.send(garbage(random.randrange(1, 5000)))
    stranger.close()
    return "sent"


def says_nothing(host, port, random, held):
    stranger = connect(host, port)
    if stranger is None:
        return "not let in"
    if random.random() < 0.5:
        stranger.send(greeting()[: random.randrange(64)])
    held.append(stranger)
    return "holds"


def shakes_hands_only(host, port, random, held):
    stranger = connect(host, port)
    if stranger is None:
        return "not let in"
    answer = stranger.greet()
    held.append(stranger)
    return "in" if answer else "refused"


def never_ends(host, port, random, held):
    """Empty parts with MORE, and never a last one."""
    stranger = connect(host, port)
    if stranger is None:
        return "not let in"
    if not stranger.greet():
        stranger.close()
        return "refused"
    block = part(b"", more=True) * 65536
    sent = 0
    while sent < 200 * MIB and stranger.send(block):
        sent += len(block)
    stranger.close()
    return "cut" if sent < 200 * MIB else "swallowed"


def announces_much(host, port, random, held):
    """A size of up to 2^64 - 1, and some bytes of it."""
    stranger = connect(host, port)
    if stranger is None:
        return "not let in"
    stranger.greet()
    size = random.choice([MIB, 2**31, 2**32 + 1, 2**63, 2**64 - 1])
    stranger.send(bytes([LONG | random.choice([0, 1, COMMAND])]) + struct.pack(">Q", size) + garbage(1000))
    stranger.close()
    return "sent"


def large_command(host, port, random, held):
    """A handshake command as large as may be, less its last byte."""
    stranger = connect(host, port)
    if stranger is None:
        return "not let in"
    stranger.send(greeting(random.choice([b"NULL", b"CURVE"])))
    stranger.read(64)
    stranger.send(bytes([COMMAND | LONG]) + struct.pack(">Q", MIB - 1) + bytes(MIB - 2))
    held.append(stranger)
    return "holds"


def talks_nonsense(host, port, random, held):
    """Whole messages of random bytes."""
    stranger = connect(host, port)
    if stranger is None:
        return "not let in"
    if not stranger.greet():
        stranger.close()
        return "refused"
    for _ in range(random.randrange(1, 200)):
        if not stranger.send(part(garbage(random.randrange(0, 2000)))):
            break
    stranger.close()
    return "sent"


ACTS = [says_garbage, says_nothing, shakes_hands_only, never_ends, announces_much, large_command, talks_nonsense]
