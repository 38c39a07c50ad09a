"""A mesh of real tgd processes on loopback (or in network namespaces), for tests.

    with Mesh(4) as mesh:
        run = mesh.start({"steps": 10})       # tgctl start, followed to its end
        print(mesh.run(run)["digest"])        # tgctl status --json

Every wait polls what the programs themselves say, with a deadline; nothing sleeps and hopes. Leaving the block kills
every process; if it is left by a failure, the folder with configurations, logs and states is kept and the tails of
the logs are printed. The programs are named by the environment: TGD and TGCTL.
"""

import collections
import ctypes
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TGD = os.environ.get("TGD", "tgd")
TGCTL = os.environ.get("TGCTL", "tgctl")

# Seconds until something that normally takes moments counts as a failure; sanitizers and busy machines need more.
PATIENCE = float(os.environ.get("TGD_PATIENCE", "60"))
OF_TESTS = ("TGD_DEATHS", "TGD_PATIENCE", "TGD_PAUSE", "TGD_STARTS")  # tgd takes TGD_* that look like its own for typing errors
POLL_SECONDS = 0.05
TAIL_LINES = 25

Answer = collections.namedtuple("Answer", "code out err")

# A small honest job: a step of it takes some milliseconds per node.
SMALL_JOB = {
    "model": "lenet",
    "data": "synthetic",
    "data-train": 256,
    "data-test": 64,
    "steps": 10,
    "global-batch": 16,
    "learning-rate": 0.01,
    "digest-every": 5,
}

FINAL = ("STOPPED", "COMPLETED", "FAILED")

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _die_with_us():
    """In a new node: a test that is killed leaves none behind."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def own_loopback_address():
    """Linux answers on all of 127/8: an address of its own for each test process keeps parallel tests apart."""
    pid = os.getpid()
    return f"127.{1 + (pid >> 16) % 200}.{(pid >> 8) % 256}.{pid % 256}"


_next_port = itertools.count(20000 + os.getpid() % 1000 * 10, 2)


def free_port_pair(host):
    """A mesh port whose control port, the one above it, is free too. Never handed out twice by one process."""
    for port in _next_port:
        if port > 32000:
            break
        try:
            for one in (port, port + 1):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind((host, one))
            return port
        except OSError:
            continue
    raise RuntimeError(f"no two neighbouring ports are free on {host}")


def wait_until(what, condition, patience=None):
    """The condition's first true value. `what` is a text, or a function that makes one when the time is over."""
    patience = PATIENCE if patience is None else patience
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what() if callable(what) else what}: not within {patience:g} s")
        time.sleep(POLL_SECONDS)


def job_arguments(keys):
    return [text for key, value in keys.items() for text in ("--set", f"{key}={value}")]


class Node:
    """One tgd: its configuration, its log and, while it lives, its process."""

    def __init__(self, name, host, port, folder, prefix=()):
        self.name, self.host, self.port, self.folder, self.prefix = name, host, port, folder, list(prefix)
        self.config = os.path.join(folder, name + ".conf")
        self.log = os.path.join(folder, name + ".log")
        self.state_dir = os.path.join(folder, name)
        self.process = None

    @property
    def address(self):
        return f"{self.host}:{self.port + 1}"

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.prefix + [TGD, "--config", self.config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={name: value for name, value in os.environ.items() if name not in OF_TESTS},
                preexec_fn=_die_with_us,
            )

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, patience=None):
        """Its exit status; negative for a signal."""
        try:
            return self.process.wait(PATIENCE if patience is None else patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} (log {self.log}) did not end") from None

    def end(self):
        """Asks it to end, insists after a while; its exit status."""
        if not self.alive():
            return None if self.process is None else self.process.returncode
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def log_text(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def tail(self):
        lines = self.log_text().splitlines()[-TAIL_LINES:] if os.path.exists(self.log) else []
        state = "running" if self.alive() else "not started" if self.process is None else f"ended with {self.process.returncode}"
        return f"--- {self.name} ({state}), log {self.log}\n" + "".join(f"    {line}\n" for line in lines)

    def run_file(self, run, name):
        return os.path.join(self.state_dir, "runs", run, name)

    def record(self, run):
        with open(self.run_file(run, "run.json")) as file:
            return json.load(file)


class Follower:
    """A tgctl that runs on its own: start, follow, wait."""

    def __init__(self, arguments, environment):
        self.arguments = arguments
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
        )

    def first_line(self):
        """What start prints as soon as the run has begun: its id."""
        return self.process.stdout.readline().strip()

    def finish(self, patience=None):
        patience = PATIENCE if patience is None else patience
        try:
            out, err = self.process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"{' '.join(self.arguments)} did not end within {patience:g} s:\n{out}{err}") from None
        return Answer(self.process.returncode, out, err)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Mesh:
    """`count` nodes named node-a, node-b, ... Settings go to every configuration, those of `per_node` (by index) win.

    hosts and prefixes, one per node, put the nodes into namespaces; `absent` ones are configured but not started.
    """

    def __init__(self, count, settings=None, per_node=None, hosts=None, prefixes=None, absent=()):
        self.folder = tempfile.mkdtemp(prefix="tgd-test-")
        self.settings = {"threads": 1, "peer-timeout": "5s"} | (settings or {})
        self.per_node = {index: dict(keys) for index, keys in (per_node or {}).items()}
        self.absent = set(absent)
        hosts = hosts or [own_loopback_address()] * count
        prefixes = prefixes or [()] * count
        self.nodes = [
            Node(f"node-{chr(ord('a') + i)}", hosts[i], 7700 if prefixes[i] else free_port_pair(hosts[i]), self.folder, prefixes[i])
            for i in range(count)
        ]
        self.followers = []
        for i in range(count):
            self.configure(i)

    def __len__(self):
        return len(self.nodes)

    def __getitem__(self, index):
        return self.nodes[index]

    def configure(self, index, **changes):
        """Writes the node's file again; a setting of None goes away. Underscores stand for dashes."""
        own = self.per_node.setdefault(index, {})
        own |= {key.replace("_", "-"): value for key, value in changes.items()}
        node = self.nodes[index]
        lines = [f"node = {node.name}"]
        lines += [f"peer = {one.name}@{one.host}:{one.port}" for one in self.nodes]
        keys = {"listen": node.host, "state-dir": node.state_dir} | self.settings | own
        lines += [f"{key} = {value}" for key, value in keys.items() if value is not None]
        with open(node.config, "w") as file:
            file.write("\n".join(lines) + "\n")

    # --- life ---

    def __enter__(self):
        try:
            self.start_nodes()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, error, trace):
        failed = kind is not None and not issubclass(kind, unittest.SkipTest)
        try:
            if not failed:
                self.end_nodes()
        except AssertionError:
            failed = True
            raise
        finally:
            report = self.report() if failed else ""
            for follower in self.followers:
                follower.kill()
            for node in self.nodes:
                node.kill()
            if failed:
                sys.stderr.write(report)
                sys.stderr.flush()
            else:
                shutil.rmtree(self.folder, ignore_errors=True)
        return False

    def end_nodes(self):
        """Every test ends as a user would end it, and each node that is left has to do so in good order."""
        left = [node for node in self.nodes if node.alive()]
        for node in left:
            node.signal(signal.SIGTERM)
        for node in left:
            status = node.wait()
            if status != 0:
                raise AssertionError(f"{node.name} ended with {status} (log {node.log}):\n{node.tail()}")

    def report(self):
        text = f"\n=== {self.folder} is kept: configurations, logs and states of the nodes\n"
        witness = next((node for node in self.nodes if node.alive()), None)
        if witness is not None:
            try:
                text += f"=== runs as {witness.name} sees them\n" + self.ctl("list", node=witness, patience=10).out
            except AssertionError as silence:
                text += f"=== {witness.name} does not say which runs there are: {silence}\n"
        return text + "".join(node.tail() for node in self.nodes)

    def start_nodes(self):
        present = [node for i, node in enumerate(self.nodes) if i not in self.absent]
        for node in present:
            node.start()
        self.wait_ready(present)

    def wait_ready(self, nodes=None):
        """Until each of the nodes sees all of them up."""
        nodes = self.nodes if nodes is None else nodes
        names = {node.name for node in nodes}
        for node in nodes:
            seen = {}

            def ready():
                if not node.alive():
                    raise AssertionError(f"{node.name} did not start (log {node.log}):\n{node.tail()}")
                answer = self.ctl("status", "--json", node=node)
                if answer.code != 0:
                    return False
                seen.update({row["name"]: row["state"] for row in json.loads(answer.out)["nodes"]})
                return all(seen.get(name) == "up" for name in names)

            wait_until(lambda: f"{node.name} (log {node.log}) sees {seen}", ready)

    def restart(self, indices=None):
        """Ends and starts the nodes again, all by default."""
        nodes = [self.nodes[i] for i in indices] if indices is not None else self.nodes
        for node in nodes:
            node.end()
        for node in nodes:
            node.start()
        self.wait_ready()

    # --- tgctl ---

    def _node(self, node):
        return self.nodes[node] if isinstance(node, int) else node

    def _environment(self, node):
        return os.environ | {"TGCTL_ADDRESS": self._node(node).address}

    def ctl(self, *arguments, node=0, patience=None):
        """tgctl, asking that node: exit code, stdout, stderr."""
        patience = PATIENCE if patience is None else patience
        command = self._node(node).prefix + [TGCTL, *map(str, arguments)]
        try:
            done = subprocess.run(
                command,
                env=self._environment(node),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=patience,
            )
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{' '.join(command)} did not end within {patience:g} s: {late.stdout} {late.stderr}") from None
        return Answer(done.returncode, done.stdout, done.stderr)

    def ctl_ok(self, *arguments, node=0, patience=None):
        answer = self.ctl(*arguments, node=node, patience=patience)
        if answer.code != 0:
            raise AssertionError(f"tgctl {' '.join(map(str, arguments))} at {self._node(node).name} ended with {answer.code}: {answer.err}{answer.out}")
        return answer

    def job_file(self, job):
        keys = SMALL_JOB | {key.replace("_", "-"): value for key, value in (job or {}).items()}
        handle, path = tempfile.mkstemp(suffix=".job", dir=self.folder)
        with os.fdopen(handle, "w") as file:
            file.writelines(f"{key} = {value}\n" for key, value in keys.items() if value is not None)
        return path

    def follow(self, *arguments, node=0):
        """A tgctl of its own that is not waited for yet."""
        node = self._node(node)
        follower = Follower(node.prefix + [TGCTL, *map(str, arguments)], self._environment(node))
        self.followers.append(follower)
        return follower

    def start(self, job=None, node=0, patience=None):
        """Starts a run and follows it to a good end; its id."""
        answer = self.ctl_ok("start", self.job_file(job), node=node, patience=patience)
        return answer.out.strip()

    def detach(self, job=None, node=0):
        """Starts a run and leaves it; its id."""
        return self.ctl_ok("start", self.job_file(job), "--detach", node=node).out.strip()

    def status(self, *run, node=0):
        return json.loads(self.ctl_ok("status", *run, "--json", node=node).out)

    def run(self, run, node=0):
        """The run's part of status --json."""
        runs = self.status(run, node=node)["runs"]
        if len(runs) != 1:
            raise AssertionError(f"status of {run} at {self._node(node).name} has {len(runs)} runs")
        return runs[0]

    def wait_for_step(self, run, step, node=0):
        return wait_until(
            lambda: f"run {run} at step {step}: {self.run(run, node)}", lambda: self.run(run, node)["step"] >= step
        )

    def wait_whole(self, run, without=None):
        """After a restart: until each node has every member's own part of this run; `without`: one that has none."""
        for node in self.nodes:
            wait_until(
                lambda: f"{node.name} (log {node.log}) has all members' digests of {run}: {self.run(run, node)}",
                lambda: all(member["digest"] or member["node"] == without for member in self.run(run, node)["members"]),
            )

    def fetch(self, run, *options, node=0):
        """Fetches into a new folder; its path."""
        folder = tempfile.mkdtemp(prefix="fetched-", dir=self.folder)
        self.ctl_ok("fetch", run, "-o", folder, *options, node=node)
        return folder


class Watch:
    """Asks a node for a run's status 20 times a second until it has ended, and notes when that was first seen."""

    HERTZ = 20

    def __init__(self, mesh, node, run):
        self.mesh, self.node, self.run_id = mesh, mesh._node(node), run
        self.seen_at = None  # time.time(), as the nodes' records
        self.state = None
        self.reason = None
        self.error = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        try:
            while not self._stop.is_set():
                answer = self.mesh.ctl("status", self.run_id, "--json", node=self.node, patience=10)
                now = time.time()
                if answer.code == 0:
                    run = json.loads(answer.out)["runs"][0]
                    if run["state"] in FINAL:
                        self.state, self.reason, self.seen_at = run["state"], run["reason"], now
                        return
                self._stop.wait(1 / self.HERTZ)
        except Exception as error:  # shown by result()
            self.error = error

    def result(self, patience):
        self._thread.join(patience)
        self._stop.set()
        if self.error is not None:
            raise AssertionError(f"asking {self.node.name} about run {self.run_id}: {self.error}")
        if self.seen_at is None:
            raise AssertionError(f"{self.node.name} (log {self.node.log}) does not see run {self.run_id} end within {patience:g} s")
        return self
