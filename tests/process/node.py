"""One tgd as a real process. The environment's TGD names another program than that of build/release."""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess

from addresses import with_port
from patience import PATIENCE

TGD = os.environ.get("TGD", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/daemon/tgd"))
OF_TESTS = ("TGD_BUILD", "TGD_CUTS", "TGD_DEATHS", "TGD_PATIENCE", "TGD_PAUSE", "TGD_SEED", "TGD_STARTS")  # tgd takes TGD_* that look like its own for typing errors
TAIL_LINES = 25

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _die_with_us():
    """Runs in a new node's process: a test that is killed leaves no node behind."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Node:
    """One tgd: its configuration, its log and, while it lives, its process."""

    def __init__(self, name, host, port, folder, prefix=()):
        self.name, self.host, self.port, self.folder, self.prefix = name, host, port, folder, list(prefix)
        self.config = os.path.join(folder, name + ".conf")
        self.log = os.path.join(folder, name + ".log")
        self.state_dir = os.path.join(folder, name)
        self.program = TGD
        self.environment = {}  # beside the test's own
        self.stderr = None  # a descriptor that takes its log instead of the file
        self.process = None

    @property
    def address(self):
        return with_port(self.host, self.port + 1)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.prefix + [self.program, "--config", self.config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log if self.stderr is None else self.stderr,
                env={name: value for name, value in os.environ.items() if name not in OF_TESTS} | self.environment,
                preexec_fn=_die_with_us,
            )

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def copy_state(self, to):
        """Copies its state directory, while it stands still."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        shutil.copytree(self.state_dir, to, ignore=shutil.ignore_patterns("*.sock"))
        self.signal(signal.SIGCONT)

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
