"""ZMTP 3.1 by hand (RFC 37), as far as a stranger needs it that does not keep to it."""

import os
import socket
import struct

MORE, LONG, COMMAND = 1, 2, 4
GREETING = bytes([0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 1])


def greeting(mechanism=b"NULL"):
    return GREETING + mechanism.ljust(20, b"\0") + bytes(32)


def part(body, more=False):
    flags = MORE if more else 0
    if len(body) > 255:
        return bytes([flags | LONG]) + struct.pack(">Q", len(body)) + body
    return bytes([flags, len(body)]) + body


def ready(socket_type=b"DEALER"):
    body = b"\x05READY" + b"\x0bSocket-Type" + struct.pack(">I", len(socket_type)) + socket_type
    return bytes([COMMAND, len(body)]) + body


class Stranger:
    """One TCP connection. The other end may close it at any time: what is sent then is lost, and said so by False."""

    def __init__(self, host, port, patience=5, small=False):
        self.socket = socket.socket()
        self.socket.settimeout(patience)
        if small:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        try:
            self.socket.connect((host, port))
        except OSError:
            self.socket.close()
            raise

    def send(self, data):
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def greet(self):
        """The whole NULL handshake; False where the port does not want it."""
        if not self.send(greeting()):
            return False
        theirs = self.read(64)
        return len(theirs) == 64 and theirs[12:16] == b"NULL" and self.send(ready()) and len(self.read(2)) == 2

    def read(self, count):
        data = b""
        try:
            while len(data) < count:
                more = self.socket.recv(count - len(data))
                if not more:
                    break
                data += more
        except OSError:
            pass
        return data

    def closed(self):
        """Has the other end closed it by now?"""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(65536):
                pass
            return True
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self):
        self.socket.close()


def garbage(count):
    return os.urandom(count)
