"""A node goes on whether its log is read or not, and ends when it is told to,
whatever is stuck."""

import fcntl
import json
import os
import signal
import time
import unittest

from changes import wait_for_change
from mesh import QUICK, Mesh
from patience import wait_until

PIPE_BYTES = 4096
LONG = {"steps": 100000, "schedule": "constant"}


def full_pipe():
    """(read end, write end) of the smallest pipe there is, without room for another byte."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    os.write(writer, b"." * (PIPE_BYTES - 1) + b"\n")
    return reader, writer


def expect_shut_down(test, mesh, run):
    """node-b has said goodbye and saved."""
    test.assertEqual(mesh[1].record(run)["state"], "INTERRUPTED")
    test.assertEqual(wait_for_change(mesh[0], run, members=1).why, "node-b was shut down")
    test.assertTrue(os.path.exists(mesh[1].run_file(run, "model-raw.safetensors")), "its state was not written")


class Stderr(unittest.TestCase):
    """(What is lost, counted and said to a reader that comes back: LineWriterTest.)"""

    def test_without_a_reader(self):
        """The pipe is full before the first line. A run goes on to its end; in another one the node is told to end: it says
        goodbye and saves. SIGINT is as good as SIGTERM."""
        reader, writer = full_pipe()
        mesh = Mesh(2, {"log-level": "debug"})
        mesh[1].stderr = writer
        with mesh:
            os.close(writer)
            mesh.start(QUICK, node=1)
            run = mesh.detach(LONG)
            mesh.wait_for_step(run, 3)
            mesh[1].signal(signal.SIGINT)
            self.assertEqual(mesh[1].wait(), 0)
            expect_shut_down(self, mesh, run)
        os.close(reader)

    def test_it_is_closed(self):
        """No file and no socket takes the place of a closed stderr. SIGHUP ends the node like any other signal."""
        with Mesh(2) as mesh:
            mesh[1].end()
            mesh[1].prefix = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
            mesh[1].start()
            mesh[1].prefix = []
            mesh.wait_ready()
            for number in range(3):
                self.assertEqual(os.readlink(f"/proc/{mesh[1].process.pid}/fd/{number}"), "/dev/null")
            run = mesh.detach(LONG)
            mesh.wait_for_step(run, 3)
            mesh[1].signal(signal.SIGHUP)
            self.assertEqual(mesh[1].wait(), 0)
            expect_shut_down(self, mesh, run)

    def test_an_error_at_the_start(self):
        """No reader takes the error, and the exit status is right all the same."""
        reader, writer = full_pipe()
        with Mesh(1, {"listen": "192.0.2.1", "insecure": "true"}, absent=[0]) as mesh:
            mesh[0].stderr = writer
            mesh[0].start()
            os.close(writer)
            self.assertEqual(mesh[0].wait(), 1)
        os.close(reader)

    def test_nohup_is_respected(self):
        with Mesh(1, absent=[0]) as mesh:
            mesh[0].prefix = ["nohup"]
            mesh[0].start()
            mesh[0].prefix = []
            mesh.wait_ready()
            mesh[0].signal(signal.SIGHUP)
            mesh.start(QUICK)


class RunLog(unittest.TestCase):
    def test_a_stuck_disk(self):
        """The run's log is a pipe that is not opened for reading, so that opening it hangs: as a dead network disk does."""
        with Mesh(2, absent=[1]) as mesh:
            starting = mesh.follow("start", mesh.job_file({"steps": 3}), "--id", "stuck")
            wait_until("the run waits for node-b", lambda: [run["state"] for run in mesh.status()["runs"]] == ["PENDING"])
            os.makedirs(os.path.dirname(mesh[0].run_file("stuck", "log.txt")))
            os.mkfifo(mesh[0].run_file("stuck", "log.txt"))
            mesh[1].start()
            starting.finish().ends(0)
            self.assertEqual(mesh.run("stuck")["state"], "COMPLETED")
            mesh.start(QUICK, node=1)


class Json(unittest.TestCase):
    def test_every_line_is_an_object(self):
        """It is one on stderr, in the run's folder, and as tgctl logs prints it; node-b writes text as before."""
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
    def test_a_node_that_is_stuck(self):
        """Its own thread hangs in the step after the fifth, be its log read or not: it exits, and says that it did not end in order."""
        reader, writer = full_pipe()
        stuck = {"fault": "hang@scaler-wait:5"}
        mesh = Mesh(3, per_node={1: stuck, 2: stuck})
        mesh[1].stderr = writer
        with mesh:
            os.close(writer)
            run, since = mesh.detach(LONG), {}

            def stands_still():
                step = mesh.run(run)["step"]
                return step >= 5 and time.monotonic() - since.setdefault(step, time.monotonic()) > 1

            wait_until(lambda: f"{run} stands still: {since}", stands_still)
            for node in mesh.nodes[1:]:
                node.signal(signal.SIGTERM)
            self.assertEqual([node.wait() for node in mesh.nodes[1:]], [1, 1])
            self.assertIn("something is stuck", mesh[2].log_text())
        os.close(reader)


if __name__ == "__main__":
    unittest.main()
