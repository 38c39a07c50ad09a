"""Starting, stopping, waiting for and leaving runs; several users at once."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest

from asking import TGCTL
from files import write_idx
from mesh import QUICK, Mesh
from patience import PATIENCE, wait_until

ROUNDS = int(os.environ.get("TGD_STARTS", "3"))
LONG = {"steps": 100000}


class TwoStarts(unittest.TestCase):
    def test_exactly_one_runs(self):
        """Two users at two nodes in the same instant; both ways round, and every pair of nodes in turn."""
        pairs = [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)]
        with Mesh(3) as mesh:
            job = mesh.job_file(LONG)
            for round_number in range(ROUNDS):
                self.one_round(mesh, job, round_number, pairs[round_number % len(pairs)])

    def one_round(self, mesh, job, round_number, pair):
        ids = [f"round-{round_number}-{mesh[i].name}" for i in pair]
        answers, gate = [None, None], threading.Barrier(2)

        def start(which):
            gate.wait()
            answers[which] = mesh.ctl("start", job, "--id", ids[which], "--detach", node=pair[which])

        threads = [threading.Thread(target=start, args=(which,)) for which in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        where = f"round {round_number}, {ids}: {answers}"
        self.assertEqual(sorted(answer.code for answer in answers), [0, 1], where)
        winner = 0 if answers[0].code == 0 else 1
        self.assertEqual(answers[winner].out, ids[winner] + "\n", where)
        self.assertIn(ids[winner], answers[1 - winner].err, f"the refusal names no winner: {where}")
        self.assertEqual(answers[1 - winner].out, "", where)
        running = [run["id"] for run in mesh.status()["runs"] if run["state"] in ("PENDING", "STARTING", "RUNNING")]
        self.assertEqual(running, [ids[winner]])
        self.assertEqual(mesh.ctl_ok("stop", ids[winner], node=pair[1 - winner]).out, "STOPPED\n")


class Life(unittest.TestCase):
    def test_detach_wait_stop_logs(self):
        with Mesh(3) as mesh:
            run = mesh.detach(LONG)
            self.assertRegex(run, r"^lenet-\d{8}-\d{4}-[0-9a-f]{4}$")
            # Any node knows it, also by the beginning of its id.
            self.assertEqual(mesh.ctl_ok("wait", run[:-1], "--for", "running", node=1).out, "RUNNING\n")
            self.assertEqual(mesh.ctl_ok("wait", run, "--for", "step=3", "--timeout", "50s", node=2).out, "RUNNING\n")
            late = mesh.ctl("wait", run, "--for", "completed", "--timeout", "300ms")
            self.assertEqual((late.code, late.out), (124, "RUNNING\n"), late)
            self.assertIn(run, mesh.ctl_ok("list", node=2).out)
            mesh.ctl("start", mesh.job_file(LONG), node=1).ends(1, run)
            mesh.ctl("fetch", run, "-o", os.path.join(mesh.folder, "early")).ends(1, "RUNNING")

            self.assertEqual(mesh.ctl_ok("stop", run, node=1).out, "STOPPED\n")
            for index in range(3):  # the others end when they have heard of the last report
                ended = mesh.ctl_ok("wait", run, "--for", "stopped", "--timeout", "30s", node=index)
                self.assertEqual(ended.out, "STOPPED\n", ended)
            again = mesh.ctl_ok("stop", run)
            self.assertEqual(again.out, "STOPPED\n")
            self.assertIn("has already ended", again.err)
            gone_by = mesh.ctl("wait", run, "--for", "completed")
            self.assertEqual((gone_by.code, gone_by.out), (1, "STOPPED\n"), gone_by)
            mesh.fetch(run)

            for node in ("node-a", "node-c"):
                lines = mesh.ctl_ok("logs", run, "--node", node, node=1).out.splitlines()
                self.assertTrue(lines and all(f" node={node} " in line for line in lines), lines)
                self.assertTrue(any("event=run-ended" in line for line in lines), lines)
            # What follows a log ends with the run.
            self.assertEqual(mesh.ctl_ok("logs", run, "-f").out, mesh.ctl_ok("logs", run, "--node", "node-a").out)

    def test_control_c_detaches(self):
        with Mesh(2) as mesh:
            follower = mesh.follow("start", mesh.job_file(LONG))
            run = follower.first_line()
            mesh.wait_for_step(run, 2)
            follower.process.send_signal(signal.SIGINT)
            follower.finish().ends(130, f"detached; run {run} continues")
            step = mesh.run(run)["step"]
            wait_until(f"run {run} goes on after step {step}", lambda: mesh.run(run)["step"] > step + 2)
            # A client that follows a run that is stopped ends with success.
            watcher = mesh.follow("wait", run, node=1)
            mesh.ctl_ok("stop", run)
            watcher.finish().ends(0)

    def test_progress_says_that_it_evaluates_and_the_log_has_losses(self):
        with Mesh(2) as mesh:
            # An evaluation of that many images takes much longer than a step.
            follower = mesh.follow("start", mesh.job_file({"steps": 10, "data-test": 12000, "evaluate-every": 10}))
            answer = follower.finish().ends(0, "evaluating", "  step 10/10  ")
            run = answer.out.strip()
            for line in answer.err.splitlines():
                self.assertTrue(len(line) <= 80 or line.startswith("warning: "), line)
            log = mesh.ctl_ok("logs", run).out
            steps = re.findall(r"event=progress .*step=(\d+) steps=10 loss=\d", log)
            self.assertLessEqual({str(step) for step in range(2, 11, 2)}, set(steps), log)
            self.assertRegex(log, r"event=evaluated .*step=10 accuracy=\d.* loss=\d")

    def test_line_on_a_terminal_of_eighty_columns(self):
        with Mesh(1) as mesh:
            ours, theirs = pty.openpty()
            self.addCleanup(os.close, ours)
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            command = [TGCTL, "start", mesh.job_file(LONG | {"evaluate-every": 5})]
            tgctl = subprocess.Popen(command, env=mesh._environment(0), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs)
            self.addCleanup(tgctl.stdout.close)
            self.addCleanup(tgctl.kill)
            os.close(theirs)
            text = ""
            deadline = time.monotonic() + PATIENCE
            while " left  " not in text or "accuracy" not in text:
                self.assertLess(time.monotonic(), deadline, text)
                if select.select([ours], [], [], 1)[0]:
                    text += os.read(ours, 4096).decode()
            tgctl.send_signal(signal.SIGINT)
            self.assertEqual(tgctl.wait(PATIENCE), 130)
            for line in re.split(r"[\r\n]+", text.replace("\x1b[K", "")):
                self.assertLessEqual(len(line), 79, line)

    def test_times_in_json_and_text(self):
        with Mesh(1) as mesh:
            run = mesh.detach(LONG)
            mesh.wait_for_step(run, 5)
            moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
            shown = mesh.run(run)
            self.assertRegex(shown["started"], moment)
            self.assertRegex(shown["since"], moment)
            self.assertGreater(shown["seconds_left"], 0)
            self.assertRegex(mesh.ctl_ok("status", run).out, rf"started +{moment}")
            self.assertRegex(mesh.ctl_ok("status", run).out, r"RUNNING for .*, about \S+ left")
            listed = json.loads(mesh.ctl_ok("list", "--json").out)
            self.assertEqual((listed["schema_version"], [one["id"] for one in listed["runs"]]), (1, [run]))
            self.assertEqual(mesh.ctl_ok("stop", run).out, "STOPPED\n")
            self.assertIsNone(mesh.run(run)["seconds_left"])
            self.assertRegex(mesh.ctl_ok("status", run).out, rf"ended +{moment}")

    def test_runs_that_go_on_come_first(self):
        with Mesh(1) as mesh:
            job = mesh.job_file({"steps": 2})
            for name in ("lenet-old", "lenet-older"):
                mesh.ctl_ok("start", job, "--id", name)
            mesh.ctl_ok("fetch", "lenet-old", "-o", f"{mesh.folder}/by-id")
            taken = mesh.ctl_ok("fetch", "lenet", "-o", f"{mesh.folder}/newest")
            self.assertIn("using run lenet-older\n", taken.err)
            self.assertIn("using run lenet-older\n", mesh.ctl_ok("logs", "lenet").err)
            for name in ("lenet", "@last"):
                self.assertEqual(mesh.run(name)["id"], "lenet-older")
                mesh.ctl("delete", name).ends(2, "lenet" if name == "lenet" else "delete does not take @last")
            mesh.ctl("stop", "lenet").ends(2, "lenet-old", "lenet-older")
            long = mesh.job_file(LONG)
            mesh.ctl_ok("start", long, "--id", "lenet-on", "--detach")
            for asked in (["list"], ["status"]):
                rows = [line.split()[0] for line in mesh.ctl_ok(*asked).out.splitlines() if line.startswith("lenet-")]
                self.assertEqual(rows[0], "lenet-on")
                self.assertEqual(len(rows), 3)
            # To look at, a beginning that several have means the one that goes on; to fetch, the newest that has ended.
            self.assertEqual(mesh.run("lenet")["id"], "lenet-on")
            mesh.ctl_ok("fetch", "lenet", "-o", f"{mesh.folder}/meanwhile")
            with open(f"{mesh.folder}/meanwhile/run.json") as file:
                self.assertEqual(json.load(file)["id"], "lenet-older")
            mesh.ctl("fetch", "@last", "-o", f"{mesh.folder}/going-on").ends(1, "run lenet-on is RUNNING")
            watcher = mesh.follow("wait", "lenet", "--timeout", "60s")
            wait_until("a waiting tgctl has asked once", lambda: mesh.run("lenet")["step"] > 2)
            self.assertEqual(mesh.ctl_ok("stop", "@last").out, "STOPPED\n")
            watcher.finish().ends(0)
            self.assertEqual(mesh.run("lenet")["id"], "lenet-on")

    def test_id_and_prefixes(self):
        with Mesh(1) as mesh:
            job = mesh.job_file({"steps": 2})
            for name in ("first", "fifth"):
                self.assertEqual(mesh.ctl_ok("start", job, "--id", name, "--detach").out, name + "\n")
                mesh.ctl_ok("wait", name)
            mesh.ctl("start", job, "--id", "first").ends(1, "first")
            self.assertEqual(mesh.run("fir")["id"], "first")
            self.assertEqual(mesh.run("fi")["id"], "fifth")

    def test_dry_run(self):
        with Mesh(2) as mesh:
            answer = mesh.ctl_ok("start", mesh.job_file({"global-batch": 64, "link-mbps": 1000}), "--dry-run")
            self.assertIn("1256080", answer.out)
            self.assertRegex(answer.out, r"speed-up +\d+\.\d+ x over one node")
            self.assertEqual(mesh.status()["runs"], [], "a plan is no run")
            # A slow link makes two nodes slower than one: that is said, with numbers.
            slow = mesh.ctl_ok("start", mesh.job_file({"link-mbps": 0.5}), "--dry-run")
            warning = next((line for line in slow.err.splitlines() if "warning" in line), "")
            speed_up = re.search(r"(\d+\.\d+) x as fast", warning)
            self.assertTrue(speed_up and float(speed_up[1]) < 1.2, slow)

    def test_a_waiting_client_sees_how_many_images_are_left(self):
        with Mesh(1) as mesh:
            # Drawing that many takes longer than the first look at it, for a dry run 0.2 s, for a start 1.2 s.
            job = mesh.job_file({"data-train": 200000, "steps": 2})
            self.assertRegex(mesh.ctl_ok("start", job, "--dry-run").err, r"dry run .*node-a reads [\d,]+ of 200,000 images")
            self.assertRegex(mesh.ctl_ok("start", job).err, r"STARTING .*node-a reads [\d,]+ of 200,000 images")

    def test_shut_down_without_a_run(self):
        with Mesh(2) as mesh:
            for node in mesh.nodes:
                self.assertEqual(node.end(), 0, f"{node.name}, log {node.log}")


def on_terminal(mesh, columns, *arguments, environment=None):
    """What tgctl prints where stdout is a terminal of so many columns."""
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        tgctl = subprocess.Popen([TGCTL, *arguments], env=mesh._environment(0) | (environment or {}), stdin=subprocess.DEVNULL, stdout=theirs)
        os.close(theirs)
        text = b""
        try:
            while data := os.read(ours, 4096):
                text += data
        except OSError:  # the other side is closed
            pass
        tgctl.wait(PATIENCE)
        return text.decode().replace("\r\n", "\n")
    finally:
        os.close(ours)


class Width(unittest.TestCase):
    def test_a_run_is_a_row_at_any_width(self):
        name = "a-run-with-a-name-of-sixty-three-letters-which-is-the-most-then"
        with Mesh(1) as mesh:
            mesh.ctl_ok("start", mesh.job_file({"steps": 2}), "--id", name)
            piped = mesh.ctl_ok("list").out
            self.assertIn(f"{name}  COMPLETED  ", piped)
            self.assertEqual(len(piped.splitlines()), 2, piped)
            for arguments, columns, environment in ((("list",), 60, {}), (("list",), 120, {}), (("status",), 80, {}), (("list",), 80, {"COLUMNS": "200"})):
                with self.subTest(arguments=arguments, columns=columns, environment=environment):
                    text = on_terminal(mesh, columns, *arguments, environment=environment)
                    rows = [line for line in text.splitlines() if line.startswith("a-run")]
                    self.assertEqual(len(rows), 1, text)
                    wide = int(environment.get("COLUMNS", columns))
                    self.assertTrue(all(len(line) <= wide for line in text.splitlines()), text)
                    self.assertEqual(name in rows[0], wide > 110, text)


class Absent(unittest.TestCase):
    def start_pending(self, mesh, job):
        """Starts a run that has to wait for a node, and waits until it is shown as such."""
        follower = mesh.follow("start", mesh.job_file(job), "--id", "patient")
        wait_until("run patient is shown as PENDING", lambda: [run["state"] for run in mesh.status()["runs"]] == ["PENDING"])
        return follower

    def test_an_absent_node(self):
        with Mesh(3, absent={2}) as mesh:
            answer = mesh.ctl("start", mesh.job_file({"start-timeout": "3s"}), "--id", "lonely").ends(5, "node-c")
            self.assertNotIn("node-b", answer.err)
            shown = mesh.run("lonely")
            self.assertEqual(shown["state"], "FAILED")
            self.assertIn("node-c", shown["reason"])
            states = {node["name"]: node["state"] for node in mesh.status()["nodes"]}
            self.assertEqual((states["node-a"], states["node-b"]), ("up", "up"))
            self.assertNotEqual(states["node-c"], "up")
            mesh.ctl("start", mesh.job_file(QUICK), "--id", "lonely").ends(1, "run lonely exists already")
            self.assertEqual([run["id"] for run in mesh.status()["runs"]], ["lonely"])

    def test_node_that_comes_late(self):
        with Mesh(3, absent={1}) as mesh:
            follower = self.start_pending(mesh, {"steps": 3})
            mesh[1].start()
            follower.finish().ends(0)

    def test_health_check(self):
        with Mesh(2, absent={1}) as mesh:
            answer = mesh.ctl("status", "--check").ends(8, "mesh incomplete", "node-b: ")
            self.assertIn("node-b", answer.out)
            mesh[1].start()
            mesh.wait_ready()
            mesh.ctl("status", "--check").ends(0)

    def test_progress_names_the_absent_node(self):
        with Mesh(2, absent={1}) as mesh:
            answer = mesh.ctl("start", mesh.job_file({"start-timeout": "13s"})).ends(5, "node-b")
            # Either port may be the first to be found missing.
            pattern = r"(?m)^PENDING  \d+s  (waiting for node-b: (?:nothing answers at [0-9.:]+; is its tgd running, and is that its address\?$|its mesh port [0-9.:]+ .*))"
            said = re.findall(pattern, answer.err)
            self.assertTrue(said, answer.err)
            # A pipe gets a line only when it says something else than the one before.
            self.assertTrue(all(one != other for one, other in zip(said, said[1:])), answer.err)

    def test_a_detaching_client_learns_the_absent_node(self):
        with Mesh(2, absent={1}) as mesh:
            follower = mesh.follow("start", mesh.job_file({"start-timeout": "60s", "steps": 3}), "--id", "patient", "--detach")
            self.assertIn("waiting for node-b: ", follower.process.stderr.readline())  # long before the start ends
            mesh[1].start()
            follower.finish().ends(0)

    def test_control_c_while_pending_stops_the_run(self):
        with Mesh(2, absent={1}) as mesh:
            follower = self.start_pending(mesh, {"start-timeout": "60s"})
            follower.process.send_signal(signal.SIGINT)
            answer = follower.finish().ends(130, "interrupted; run patient was stopped before it began")
            self.assertEqual(answer.out, "")
            self.assertEqual(mesh.run("patient")["state"], "STOPPED")
            mesh[1].start()
            mesh.wait_ready()
            mesh.start(QUICK)

    def test_control_c_while_preparing_stops_the_run(self):
        with Mesh(2) as mesh:
            # Drawing that many images takes long enough to be interrupted in.
            follower = mesh.follow("start", mesh.job_file({"data-train": 60000, "steps": 100000}), "--id", "slow")
            wait_until("run slow is shown as STARTING", lambda: [run["state"] for run in mesh.status()["runs"]] == ["STARTING"])
            follower.process.send_signal(signal.SIGINT)
            follower.finish().ends(130, "interrupted; run slow was stopped before it began")
            wait_until("no node has a run that goes on", lambda: all(run["state"] in ("STOPPED", "FAILED") for node in (0, 1) for run in mesh.status(node=node)["runs"]))
            mesh.start(QUICK)

    def test_pending_run_is_stopped(self):
        with Mesh(2, absent={1}) as mesh:
            follower = self.start_pending(mesh, {})
            self.assertEqual(mesh.ctl_ok("stop", "patient").out, "STOPPED\n")
            answer = follower.finish()
            self.assertNotEqual(answer.code, 0, answer)
            self.assertIn("stopped", answer.err)


class Mismatch(unittest.TestCase):
    def test_other_data(self):
        with Mesh(3) as mesh:
            for index in range(3):
                folder = os.path.join(mesh.folder, f"data-{index}")
                write_idx(folder, seed=2 if index == 1 else 1)
                mesh.configure(index, data_dir=folder)
            mesh.restart()
            job = {"data": "mnist", "data-train": None, "data-test": None, "steps": 3}
            answer = mesh.ctl("start", mesh.job_file(job))
            self.assertNotEqual(answer.code, 0, answer)
            answer.refuses(answer.code, "node-b", "data")
            self.assertRegex(answer.err, "node-a|node-c")
            # The same files everywhere: a run.
            mesh.configure(1, data_dir=os.path.join(mesh.folder, "data-0"))
            mesh.restart([1])
            mesh.start(job)

    def test_other_names(self):
        """A start asks those in the list of the node that gets it. (Of one that lacks a name of it: Growing.)"""
        with Mesh(2) as mesh:
            mesh[1].end()
            with open(mesh[1].config, "a") as file:
                file.write(f"peer = node-x@{mesh[1].host}:1\n")
            mesh[1].start()
            mesh.wait_ready()
            mesh.start(QUICK)
            mesh.ctl("start", mesh.job_file({"start-timeout": "2s"}), node=1).ends(5, "node-x did not connect")


if __name__ == "__main__":
    unittest.main()
