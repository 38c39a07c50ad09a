"""tgctl beside the tests: runs that are followed, and a run's end as it is first seen. The environment's TGCTL names another
program than that of build/release."""

import collections
import json
import os
import pathlib
import subprocess
import threading
import time

from patience import PATIENCE, communicate

TGCTL = os.environ.get("TGCTL", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/ctl/tgctl"))
FINAL = ("STOPPED", "COMPLETED", "FAILED", "INTERRUPTED")  # nothing of it goes on


class Answer(collections.namedtuple("Answer", "code out err")):
    """What a program that has ended said."""

    def ends(self, code, *words):
        """Expects this exit code, and these words on stderr."""
        missing = [word for word in words if word not in self.err]
        if self.code != code or missing:
            raise AssertionError(f"exit code {code} expected, {missing} missing on stderr: {self}")
        return self

    def refuses(self, code, *words):
        """The same, in one clear line (beside those of progress), and with nothing on stdout."""
        self.ends(code, *words)
        lines = [line for line in self.err.strip().splitlines() if not line.startswith(("PENDING  ", "STARTING  "))]
        noise = [word for word in ("terminate called", "what():", "Traceback", "std::") if word in self.err]
        if self.out or noise or len(lines) != 1:
            raise AssertionError(f"one clear line on stderr and nothing on stdout expected: {self}")
        return self


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
        line = self.process.stdout.readline().strip()
        if not line:
            raise AssertionError(f"{self.process.args} began no run: {self.finish()}")
        return line

    def finish(self, patience=None):
        out, err = communicate(self.process, PATIENCE if patience is None else patience)
        return Answer(self.process.returncode, out, err)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


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
