"""Who reads a node's log, or does not, never decides whether the node goes on; and a node ends when it is told to,
whatever is stuck."""

import fcntl
import json
import os
import signal
import threading
import time
import unittest

from changes import wait_for_change
from mesh import Mesh
from patience import PATIENCE, Elapsed, wait_until

PIPE_BYTES = 4096
END_SECONDS = 10  # twice kShutdownMs: the promise for a node that has something stuck
PROMPT_SECONDS = 4  # for one that has not: its linger and its last lines
LONG = {"steps": 100000, "schedule": "constant"}


def full_pipe():
    """(read end, write end) of the smallest pipe there is, without room for another byte."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    os.write(writer, b"." * (PIPE_BYTES - 1) + b"\n")
    return reader, writer


class Reader:
    """Reads a pipe to its end, on a thread."""

    def __init__(self, descriptor):
        self.text = ""
        self._file = os.fdopen(descriptor, errors="replace")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._file:
            self.text += line

    def finish(self):
        self._thread.join(PATIENCE)
        self._file.close()
        return self.text


class Stderr(unittest.TestCase):
    def mesh_with(self, stderr, **settings):
        mesh = Mesh(2, settings)
        mesh[1].stderr = stderr
        return mesh

    def ends(self, node, number, seconds):
        elapsed = Elapsed()
        node.signal(number)
        self.assertEqual(node.wait(), 0, f"{node.name} after signal {number}, log {node.log}")
        took = elapsed.seconds()
        self.assertLess(took, seconds, f"{node.name} ended late, log {node.log}")
        return took

    def test_its_reader_ends(self):
        reader, writer = os.pipe()
        with self.mesh_with(writer) as mesh:
            os.close(writer)
            run = mesh.detach(LONG)
            mesh.wait_for_step(run, 3)
            os.close(reader)
            mesh.ctl_ok("stop", run, node=1)  # its end is logged
            mesh.wait_ended(run)
            mesh.start({"steps": 3}, node=1)
            self.assertLess(self.ends(mesh[1], signal.SIGTERM, PROMPT_SECONDS), PROMPT_SECONDS)

    def test_its_reader_comes_back(self):
        """A named pipe: what nobody read is counted, and said to who reads again."""
        with self.mesh_with(None) as mesh:
            path = os.path.join(mesh.folder, "log.pipe")
            os.mkfifo(path)
            first = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            mesh[1].end()
            mesh[1].stderr = os.open(path, os.O_WRONLY)
            mesh[1].start()
            os.close(mesh[1].stderr)
            mesh.wait_ready()
            os.close(first)
            mesh.start({"steps": 3})
            second = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.set_blocking(second, True)
            reader = Reader(second)
            mesh.start({"steps": 3})
            self.ends(mesh[1], signal.SIGTERM, PROMPT_SECONDS)
            text = reader.finish()
            self.assertRegex(text, r"level=warning node=node-b event=log-lines-lost lines=[1-9]")
            self.assertIn("event=run-ended", text)

    def test_nobody_reads(self):
        """The pipe is full before the first line; a run goes on to its end, the node ends, its lines come late."""
        reader, writer = full_pipe()
        with self.mesh_with(writer, **{"log-level": "debug"}) as mesh:
            os.close(writer)
            mesh.start({"steps": 3})
            mesh.start({"steps": 3}, node=1)
            text = Reader(reader)
            wait_until(lambda: f"the second run's end in {text.text}", lambda: text.text.count("event=run-ended") == 2)
            self.ends(mesh[1], signal.SIGTERM, PROMPT_SECONDS)
            self.assertIn("event=shutting-down", text.finish())

    def test_told_to_end_while_nobody_reads(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                reader, writer = full_pipe()
                with self.mesh_with(writer) as mesh:
                    os.close(writer)
                    run = mesh.detach(LONG)
                    mesh.wait_for_step(run, 3)
                    took = self.ends(mesh[1], number, PROMPT_SECONDS)
                    print(f"{signal.Signals(number).name} with a log that nobody reads: ended after {took:.2f} s")
                    # It said goodbye and saved.
                    self.assertEqual(mesh[1].record(run)["state"], "INTERRUPTED")
                    self.assertEqual(wait_for_change(mesh[0], run, members=1).why, "node-b was shut down")
                    self.assertTrue(os.path.exists(mesh[1].run_file(run, "model-raw.safetensors")), "its state was not written")
                os.close(reader)

    def test_it_is_closed(self):
        """Then no file and no socket takes its place."""
        with Mesh(2) as mesh:
            mesh[1].end()
            mesh[1].prefix = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
            mesh[1].start()
            mesh[1].prefix = []
            mesh.wait_ready()
            for number in range(3):
                self.assertEqual(os.readlink(f"/proc/{mesh[1].process.pid}/fd/{number}"), "/dev/null")
            mesh.start({"steps": 3}, node=1)

    def test_an_error_at_the_start(self):
        """Said to nobody, and the exit status is right all the same."""
        reader, writer = full_pipe()
        with self.mesh_with(None) as mesh:
            mesh[1].end()
            mesh[1].stderr = writer
            mesh.configure(1, listen="192.0.2.1", insecure="true")
            mesh[1].start()
            os.close(writer)
            self.assertEqual(mesh[1].wait(), 1)
        os.close(reader)


class HangUp(unittest.TestCase):
    def test_ends_like_any_other(self):
        with Mesh(2) as mesh:
            run = mesh.detach(LONG)
            mesh.wait_for_step(run, 3)
            mesh[1].signal(signal.SIGHUP)
            self.assertEqual(mesh[1].wait(), 0, f"log {mesh[1].log}")
            self.assertEqual(wait_for_change(mesh[0], run, members=1).why, "node-b was shut down")
            self.assertEqual(mesh[1].record(run)["state"], "INTERRUPTED")
            self.assertTrue(os.path.exists(mesh[1].run_file(run, "model-raw.safetensors")), "its state was not written")

    def test_nohup_is_respected(self):
        with Mesh(1) as mesh:
            mesh[0].end()
            mesh[0].prefix = ["nohup"]
            mesh[0].start()
            mesh[0].prefix = []
            mesh.wait_ready()
            mesh[0].signal(signal.SIGHUP)
            mesh.start({"steps": 3})


class RunLog(unittest.TestCase):
    def test_a_stuck_disk(self):
        """The run's log is a pipe that nobody opens for reading, so that opening it hangs: as a dead network disk does."""
        with Mesh(2, absent=[1]) as mesh:
            starting = mesh.follow("start", mesh.job_file({"steps": 3}), "--id", "stuck")
            wait_until("the run waits for node-b", lambda: [run["state"] for run in mesh.status()["runs"]] == ["PENDING"])
            os.makedirs(os.path.dirname(mesh[0].run_file("stuck", "log.txt")))
            os.mkfifo(mesh[0].run_file("stuck", "log.txt"))
            mesh[1].start()
            starting.finish().ends(0)
            self.assertEqual(mesh.run("stuck")["state"], "COMPLETED")
            mesh.start({"steps": 3}, node=1)


class Json(unittest.TestCase):
    def test_every_line_is_an_object(self):
        """On stderr, in the run's folder, and as tgctl logs prints it; node-b writes text as before."""
        with Mesh(2, per_node={0: {"log-format": "json"}}) as mesh:
            run = mesh.start({"steps": 6, "evaluate-every": 3})
            mesh.ctl("start", mesh.job_file({"data": "mnist", "data-dir": '/no "such" \\ folder\u00e9'})).ends(2)
            mesh.wait_ended(run)
            mesh[0].end()
            with open(mesh[0].run_file(run, "log.txt")) as file:
                kept = file.read()
            lines = [json.loads(line) for line in mesh[0].log_text().splitlines()]
            self.assertEqual(list(lines[0])[:4], ["time", "level", "node", "event"])
            self.assertEqual({line["node"] for line in lines}, {"node-a"})
            self.assertLessEqual({"node-ready", "run-started", "progress", "evaluated", "run-ended"}, {line["event"] for line in lines})
            progress = [line for line in lines if line["event"] == "progress"]
            self.assertEqual([line["step"] for line in progress], list(range(1, 7)))
            self.assertIsInstance(progress[0]["loss"], float)
            self.assertLessEqual({"run-started", "progress"}, {json.loads(line)["event"] for line in kept.splitlines()})
            mesh[0].start()
            mesh.wait_ready()
            self.assertEqual(mesh.ctl_ok("logs", run, node=1, *("--node", "node-a")).out, kept)
            self.assertTrue(mesh[1].log_text().startswith("ts="))


class Overdue(unittest.TestCase):
    def wait_until_stuck(self, mesh, run):
        """node-b hangs in the step after the fifth: then no step follows for a second."""
        since = {}

        def stuck():
            step = mesh.run(run)["step"]
            return step >= 5 and time.monotonic() - since.setdefault(step, time.monotonic()) > 1

        wait_until(lambda: f"{run} stands still: {since}", stuck)

    def test_a_node_that_is_stuck(self):
        """Its own thread hangs, and nobody reads its log: it exits in time, and says that it did not end in order."""
        for reads in (True, False):
            with self.subTest(reads=reads):
                reader, writer = full_pipe()
                with Mesh(2, per_node={1: {"fault": "hang@scaler-wait:5"}}) as mesh:
                    if not reads:
                        mesh[1].end()
                        mesh[1].stderr = writer
                        mesh[1].start()
                        mesh.wait_ready()
                    run = mesh.detach(LONG)
                    self.wait_until_stuck(mesh, run)
                    elapsed = Elapsed()
                    mesh[1].signal(signal.SIGTERM)
                    self.assertEqual(mesh[1].wait(), 1, f"log {mesh[1].log}")
                    took = elapsed.seconds()
                    print(f"stuck, its log {'read' if reads else 'not read'}: ended after {took:.2f} s")
                    self.assertLess(took, END_SECONDS + 2)
                    if reads:
                        self.assertIn("something is stuck", mesh[1].log_text())
                os.close(reader)
                os.close(writer)


if __name__ == "__main__":
    unittest.main()
