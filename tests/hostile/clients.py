"""Clients and peers that ask and read nothing, with keys and without. What they ask is what tgctl and tgd themselves say, recorded
word for word where no key is needed."""

import ctypes
import hashlib
import os
import socket
import subprocess
import tempfile
import threading

from addresses import free_port_pair, own_loopback_address
from node import TGD, _die_with_us
from zmtp import COMMAND, LONG, MORE, Stranger, greeting, part, ready

DEALER, SNDHWM, RCVHWM, LINGER, RCVBUF, SERVERKEY, PUBLICKEY, SECRETKEY, DONTWAIT = 5, 23, 24, 17, 12, 50, 48, 49, 1


def messages_of(stream):
    """The messages in what one side sent on a connection: greeting, commands and parts."""
    messages, at = [], 64
    while at + 2 <= len(stream):
        flags, head = stream[at], 9 if stream[at] & LONG else 2
        size = int.from_bytes(stream[at + 1 : at + head], "big")
        if at + head + size > len(stream):
            break
        if not flags & (COMMAND | MORE):
            messages.append(stream[at + head : at + head + size])
        at += head + size
    return messages


def requests_of_tgctl(mesh, *arguments, node=0):
    """What this tgctl asks, asked through the node's local socket, where no key is needed."""
    path, stream = os.path.join(mesh.folder, "recorder.sock"), bytearray()
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as port:
        listener.bind(path)
        listener.listen(1)
        port.connect(os.path.join(mesh[node].state_dir, "control.sock"))
        asking = subprocess.Popen([os.environ["TGCTL"], "--key", "", "--address", path, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        listener.settimeout(10)
        connection, _ = listener.accept()
        os.unlink(path)
        with connection:
            threading.Thread(target=pass_on, args=(port, connection), daemon=True).start()
            pass_on(connection, port, stream)
        asking.wait(timeout=60)
    return messages_of(bytes(stream))


def pass_on(source, target, copy=None):
    try:
        while data := source.recv(65536):
            if copy is not None:
                copy += data
            target.sendall(data)
    except OSError:
        pass  # the other side has gone


def hello_of_tgd(mesh):
    """The first word of a node that no peer line names to the first node of the mesh."""
    host = own_loopback_address()
    with socket.create_server((host, 0)) as listener, tempfile.TemporaryDirectory(dir=mesh.folder) as folder:
        listener.settimeout(30)
        config = os.path.join(folder, "tgd.conf")
        with open(config, "w") as file:
            port = listener.getsockname()[1]
            file.write(f"node = node-z\npeer = node-z@{host}:{free_port_pair(host)}\npeer = {mesh[0].name}@{host}:{port}\nlisten = {host}\nstate-dir = {folder}\nengine = cpu\n")
        tgd = subprocess.Popen([TGD, "--config", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=_die_with_us)
        try:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(1)
                connection.sendall(greeting() + ready(b"ROUTER"))
                stream = bytearray()
                while not messages_of(bytes(stream)):
                    stream += connection.recv(65536)
        finally:
            tgd.kill()
            tgd.wait()
    return messages_of(bytes(stream))[0]


class Keys:
    """The rights that a cluster key file gives its owner (schema/keys/keys.h)."""

    sodium = None

    def __init__(self, path):
        with open(path) as file:
            lines = [line.split() for line in file if line.startswith("cluster")]
        self.cluster = bytes.fromhex(lines[0][2])

    def pair(self, purpose):
        """(public, secret)"""
        if Keys.sodium is None:
            Keys.sodium = ctypes.CDLL("libsodium.so.23")
        secret = hashlib.blake2b(purpose.encode(), digest_size=32, key=self.cluster).digest()
        public = ctypes.create_string_buffer(32)
        Keys.sodium.crypto_scalarmult_base(public, secret)
        return public.raw, secret


class Keyed:
    """A DEALER of libzmq with keys, which takes one message and no more."""

    library = context = None

    def __init__(self, host, port, own, server):
        if Keyed.library is None:
            Keyed.library = ctypes.CDLL("libzmq.so.5")
            Keyed.library.zmq_ctx_new.restype = Keyed.library.zmq_socket.restype = ctypes.c_void_p
            Keyed.context = ctypes.c_void_p(Keyed.library.zmq_ctx_new())
        zmq = Keyed.library
        self.socket = ctypes.c_void_p(zmq.zmq_socket(Keyed.context, DEALER))
        if not self.socket:
            raise OSError("no more sockets")
        for option, value in ((SNDHWM, 100000), (RCVHWM, 1), (LINGER, 0), (RCVBUF, 4096)):
            number = ctypes.c_int(value)
            zmq.zmq_setsockopt(self.socket, option, ctypes.byref(number), ctypes.sizeof(number))
        for option, key in ((SERVERKEY, server), (PUBLICKEY, own[0]), (SECRETKEY, own[1])):
            if zmq.zmq_setsockopt(self.socket, option, key, len(key)) != 0:
                raise OSError("this libzmq has no keys")
        if zmq.zmq_connect(self.socket, f"tcp://{host}:{port}".encode()) != 0:
            raise OSError("no way there")

    def send(self, message):
        return Keyed.library.zmq_send(self.socket, message, len(message), DONTWAIT) >= 0

    def close(self):
        Keyed.library.zmq_close(self.socket)


class Local(Stranger):
    """A client of a node's local socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(5)
        self.socket.connect(path)


class NonReaders:
    """Crowds of clients and peers of a mesh that ask for long answers, and take none."""

    def __init__(self, mesh, run):
        """run: one that has ended well, to be asked about."""
        self.mesh, self.held = mesh, []
        self.hello = hello_of_tgd(mesh)
        folder = tempfile.mkdtemp(dir=mesh.folder)
        self.requests = {
            "slices": requests_of_tgctl(mesh, "fetch", run, "-o", os.path.join(folder, "model")),
            "logs": requests_of_tgctl(mesh, "logs", run),
            "statuses": requests_of_tgctl(mesh, "status", "--json"),
            "examinations": requests_of_tgctl(mesh, "doctor", "--no-bandwidth"),
        }
        lacking = [what for what, messages in self.requests.items() if not messages]
        if lacking:
            raise AssertionError(f"no requests for {lacking} were heard")

    def come(self, draws, node):
        """One crowd, to that node; a word for what it is."""
        kind = draws.choice(("clients", "peers", "local clients", "mesh peers"))
        what = draws.choice(sorted(self.requests))
        count = draws.randrange(5, 40)
        words = [self.hello] * 200 if kind == "mesh peers" else self.requests[what] * 80
        came = sum(self.one(kind, node, words[: draws.randrange(20, 2000)]) for _ in range(count))
        word = "hellos" if kind == "mesh peers" else what
        return f"{kind} that read no {word}" + ("" if came else ", not let in")

    def one(self, kind, node, words):
        try:
            client = self.connect(kind, node)
        except OSError:
            return False
        self.held.append(client)
        if isinstance(client, Keyed):
            return all([client.send(word) for word in words])
        return client.greet() and client.send(b"".join(map(part, words)))

    def connect(self, kind, node):
        if kind == "local clients":
            return Local(os.path.join(node.state_dir, "control.sock"))
        port = node.port + (kind != "mesh peers")
        if self.mesh.key_file is None:
            return Stranger(node.host, port, patience=1, small=True)
        keys = Keys(self.mesh.key_file)
        peer = next(one for one in self.mesh.nodes if one is not node)
        own = keys.pair("member" if kind == "clients" else f"node {peer.name}")
        server = keys.pair(f"node {node.name}" if kind == "mesh peers" else "control")
        return Keyed(node.host, port, own, server[0])

    def leave(self):
        while self.held:
            self.held.pop().close()
