"""What goes on beside a run, from the first moment on until it is ended."""

import os
import socket
import subprocess
import threading

from clients import NonReaders
from patience import Elapsed
from rotating import rotate
from zmtp import Stranger

HEALTH_SECONDS = 5  # in which /healthz answers, however many clients are at the port


class Troubles:
    """The troubles of one mesh. `counts` says what came how often, `lost` what was wrong; `metrics` are the nodes' metrics ports, `fillable`
    that their disks are small ones. The methods named in KINDS begin something; end() ends it all."""

    KINDS = ("crowds", "slow_metrics", "stopped_clients", "idle_crowd", "full_disks", "rotation")

    def __init__(self, mesh, draws, counts, lost, metrics, fillable, run):
        """run: one that has ended well, to be asked about."""
        self.mesh, self.draws, self.counts, self.lost, self.metrics, self.run = mesh, draws, counts, lost, metrics, run
        self.fillable = fillable
        self.non_readers = NonReaders(mesh, run)
        self.away = None  # a node that reads no keys now
        self.held, self.processes, self.threads, self.full = [], [], [], []
        self.ending = threading.Event()

    def possible(self):
        without = set() if self.fillable else {"full_disks"}
        without |= set() if self.mesh.key_file else {"rotation"}
        return [kind for kind in self.KINDS if kind not in without]

    def begin(self, kind):
        getattr(self, kind)()

    def crowds(self):
        """Clients and peers that ask and read nothing."""
        for _ in range(self.draws.randrange(1, 4)):
            node = self.draws.choice([node for node in self.mesh.nodes if node.alive()])
            self.counts[self.non_readers.come(self.draws, node)] += 1

    def slow_metrics(self):
        """Many clients of one metrics port that dribble a request, and many that ask and read nothing."""
        port = self.metrics[self.draws.randrange(len(self.mesh))]
        for _ in range(38):
            self.in_background(lambda: self.dribble(port))
        for _ in range(10):
            reader = self.connect(port)
            if reader is not None:
                reader.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
                self.held.append(reader)
        self.counts["slow at the metrics port"] += 1

    def connect(self, port):
        try:
            return Stranger(*port, patience=1, small=True)
        except OSError:
            return None

    def dribble(self, port):
        while not self.ending.is_set():
            slow = self.connect(port)
            while slow is not None and not self.ending.wait(0.3) and slow.send(b"X"):
                pass
            if slow is not None:
                slow.close()

    def stopped_clients(self):
        """tgctl whose output is not read, and tgctl that stands still in the middle of a fetch."""
        folder = os.path.join(self.mesh.folder, f"stopped-{len(os.listdir(self.mesh.folder))}")
        node = self.draws.choice(self.mesh.nodes)
        for arguments in (("logs", self.run, "--follow"), ("status", "--watch"), ("fetch", self.run, "-o", folder)):
            self.processes.append(self.mesh.follow(*arguments, node=node))
        self.ending.wait(self.draws.random() * 0.1)
        self.processes[-1].process.send_signal(19)
        self.counts["tgctl whose output is not read"] += 1

    def idle_crowd(self):
        """More connections than are usual, which say nothing."""
        node = self.draws.choice(self.mesh.nodes)
        for port in (node.port, node.port + 1):
            for _ in range(60):
                idle = self.connect((node.host, port))
                if idle is not None:
                    self.held.append(idle)
        self.counts["idle crowd"] += 1

    def full_disks(self):
        self.full = self.draws.sample(self.mesh.nodes, self.draws.randrange(1, len(self.mesh) + 1))
        for node in self.full:
            self.mesh.fill(node)
        self.counts[f"full disks: {'all' if len(self.full) == len(self.mesh) else 'some'}"] += 1

    def rotation(self):
        self.in_background(self.rotate)
        self.counts["rotations"] += 1

    def rotate(self):
        try:
            rotate(self.mesh, lambda: [node for node in self.mesh.nodes if node is not self.away and node.alive()])
        except (AssertionError, subprocess.SubprocessError) as error:
            self.lost.append(f"a rotation: {error}")

    def in_background(self, work):
        self.threads.append(threading.Thread(target=work, daemon=True))
        self.threads[-1].start()

    def healthy(self, node):
        """Whether the node's metrics port says so in time."""
        elapsed = Elapsed()
        try:
            with socket.create_connection(self.metrics[self.mesh.nodes.index(node)], timeout=30) as asking:
                asking.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                answer = asking.recv(100)
        except OSError as error:
            answer = repr(error).encode()
        took = elapsed.seconds()
        if b" 200 " not in answer or took > HEALTH_SECONDS:
            self.lost.append(f"/healthz of {node.name} after {took:.1f} s: {answer[:60]}")

    def end(self):
        self.ending.set()
        self.non_readers.leave()
        for process in self.processes:
            process.kill()
        for thread in self.threads:
            thread.join(timeout=120)
            if thread.is_alive():
                self.lost.append("a trouble did not end")
        while self.held:
            self.held.pop().close()
        for node in self.full:
            self.mesh.free(node)
        self.threads, self.processes, self.full = [], [], []
        self.ending.clear()
