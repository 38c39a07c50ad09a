"""Members of a run leave it, come back as new processes, or all go: what they and the others say and do then, and how the run
goes on. (test_deaths: each way to die; test_changes: inside a change; test_kills: random ones; test_paused: too few are left.)"""

import glob
import hashlib
import json
import os
import shutil
import signal
import unittest

from changes import changes, check_end, wait_for_change, wait_recorded
from files import read_safetensors
from mesh import QUICK, Mesh
from resuming import start_all, intervals, whole

JOB = {"steps": 100000, "schedule": "constant", "data-train": 1024, "checkpoint-every": "200ms", "evaluate-every": 10}
MESH = {"peer-timeout": "3s"}


def leave(node, number):
    node.signal(number)
    return node.wait()


class Ends(unittest.TestCase):
    """A member dies where the run ends: the others finish it, with the same bits."""

    STEPS = 12

    def dies(self, fault):
        job = JOB | {"steps": self.STEPS, "digest-every": 4, "evaluate-every": 6}
        with Mesh(3, MESH, per_node={1: {"fault": fault}}) as mesh:
            follower = mesh.follow("start", mesh.job_file(job), node=0)
            run = follower.first_line()
            self.assertEqual(mesh[1].wait(), -signal.SIGKILL)
            follower.finish().ends(0, "COMPLETED")
            survivors = [mesh[0], mesh[2]]
            lines = check_end(survivors, run)
            self.assertEqual((lines[-1]["members"], lines[-1]["to_step"]), (["node-a", "node-c"], self.STEPS))
            mesh.configure(1, fault=None)
            mesh[1].start()
            mesh.wait_ready()
            self.assertEqual(wait_recorded(mesh[1], run, "COMPLETED")["digest"], mesh[0].record(run)["digest"])
            mesh.start(QUICK, node=1)

    def test_in_the_last_step(self):
        self.dies(f"kill@gather:{self.STEPS - 1}")

    def test_in_the_last_evaluation(self):
        self.dies(f"kill@evaluate:{self.STEPS}")


class ComesBack(unittest.TestCase):
    """A new process of a member is no member: it knows the run, and harms no member."""

    def check_outsider(self, mesh, run, back, witness):
        log = len(mesh[back].log_text())
        mesh[back].start()
        mesh.wait_ready()
        mesh.wait_for_step(run, mesh.run(run, node=witness)["step"] + 10, node=witness)
        shown = mesh.run(run, node=back)
        self.assertEqual((shown["state"], [one["node"] for one in shown["left"]]), ("RUNNING", [mesh[back].name]), shown)
        mesh.ctl("resume", run, node=back).ends(1, f"run {run} is RUNNING; there is nothing to resume")
        mesh.ctl("start", mesh.job_file({"steps": 3}), node=back).ends(1, run)
        self.assertEqual(mesh[back].record(run)["state"], "INTERRUPTED")
        self.assertNotIn("event=auto-resume", mesh[back].log_text()[log:])
        self.assertEqual(len(changes(mesh[witness], run)), 1, "it costs nothing")

    def test_the_senior_of_three(self):
        with Mesh(3, MESH) as mesh:
            run = mesh.detach(JOB | {"auto-resume": "true"}, node=0)
            mesh.wait_for_step(run, 5)
            leave(mesh[0], signal.SIGKILL)
            why = [wait_for_change(mesh[one], run, members=2).why for one in (1, 2)]
            self.assertTrue(all("node-a" in one for one in why), why)
            self.check_outsider(mesh, run, back=0, witness=1)
            mesh.ctl_ok("stop", run, node=0)  # the others hear of it
            for node in mesh.nodes:
                wait_recorded(node, run, "STOPPED")
            check_end(mesh.nodes[1:], run)
            mesh.start(QUICK)

    def test_the_junior_of_two(self):
        with Mesh(2, MESH) as mesh:
            run = mesh.detach(JOB, node=1)
            mesh.wait_for_step(run, 5)
            leave(mesh[1], signal.SIGKILL)
            self.assertIn("node-b", wait_for_change(mesh[0], run, members=1).why)
            self.check_outsider(mesh, run, back=1, witness=0)
            mesh.ctl_ok("stop", run, node=0)
            for node in mesh.nodes:
                wait_recorded(node, run, "STOPPED")
            check_end(mesh.nodes[:1], run)


class Resumed(unittest.TestCase):
    """All have gone, not all at once: the run goes on from the newest state that all have, or says what to do."""

    def test_shut_down_one_after_the_other(self):
        """All are shut down at once: each leaves what it has confirmed, and all leave the newest of these, or the step after it,
        where all had committed that and none had heard so of the others."""
        with Mesh(3, MESH) as mesh:
            job = JOB | {"steps": 40, "checkpoint-every": "0s"}
            digest = whole(mesh, mesh.start(job))
            run = mesh.detach(job)
            mesh.wait_for_step(run, 5)
            for node in reversed(mesh.nodes):
                node.signal(signal.SIGTERM)
            for node in mesh.nodes:
                self.assertEqual(node.wait(), 0, f"log {node.log}")
            steps = {node.record(run)["step"] for node in mesh.nodes}
            self.assertLessEqual(max(steps) - min(steps), 1, steps)
            start_all(mesh)
            self.assertEqual(mesh.run(run)["state"], "INTERRUPTED")
            mesh.ctl_ok("resume", run)
            (start,) = [line["from"]["step"] for line in intervals(mesh[0], run) if line["lineage"] == 2]
            self.assertIn(start, (max(steps), max(steps) + 1))
            self.assertEqual(whole(mesh, run), digest)

    def test_shut_down_while_some_have_evaluated(self):
        """Some members may know the evaluation of the step that a shutdown comes in, and others not."""
        with Mesh(2, MESH) as mesh:
            job = JOB | {"steps": 40, "evaluate-every": 1, "checkpoint-every": "0s"}
            digest = whole(mesh, mesh.start(job))
            run = mesh.detach(job)
            mesh.wait_for_step(run, 5)
            for node in reversed(mesh.nodes):
                node.signal(signal.SIGTERM)
            for node in mesh.nodes:
                self.assertEqual(node.wait(), 0, f"log {node.log}")
            for node, later in zip(mesh.nodes, (0, -1)):
                self.set_evaluated(node, run, later)
            start_all(mesh)
            mesh.ctl_ok("resume", run)
            self.assertGreaterEqual(intervals(mesh[0], run)[1]["from"]["step"], 5)
            self.assertEqual(whole(mesh, run), digest)

    def set_evaluated(self, node, run, later):
        """Changes what the node keeps: the last evaluation is of the state's step, or so many later."""
        path, record = node.run_file(run, "state.safetensors"), node.record(run)
        with open(path, "rb") as file:
            content = file.read()
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        metadata = header["__metadata__"]
        counters = json.loads(metadata["counters"])
        metadata["counters"] = json.dumps(counters | {"evaluated": True, "evaluation_step": int(metadata["step"]) + later}, separators=(",", ":"))
        tensors = sorted((one for one in header.items() if one[0] != "__metadata__"), key=lambda one: one[1]["data_offsets"])
        texts = [text for name, value in sorted(metadata.items()) if name != "header-sha256" for text in (name, value)]
        texts += [text for name, tensor in tensors for text in (name, "".join(f"{size}," for size in tensor["shape"]))]
        metadata["header-sha256"] = hashlib.sha256("".join(f"{len(text.encode())}:{text}" for text in texts).encode()).hexdigest()
        changed = json.dumps(header, separators=(",", ":")).encode()
        changed += b" " * (-len(changed) % 8)
        content = len(changed).to_bytes(8, "little") + changed + content[8 + length :]
        with open(path, "wb") as file:
            file.write(content)
        record["files"]["state.safetensors"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        with open(node.run_file(run, "run.json"), "w") as file:
            json.dump(record, file)

    def went_on_without(self, number, checkpoint):
        """node-a is alone at the end, and has what no other node has."""
        with Mesh(3, MESH) as mesh:
            run = mesh.detach(JOB | {"checkpoint-every": checkpoint})
            mesh.wait_for_step(run, 5)
            for members in (2, 1):
                leave(mesh[members], number)
                change = wait_for_change(mesh[0], run, members=members)
                mesh.wait_for_step(run, change.start + (30 if number == signal.SIGKILL else 10))  # beyond a checkpoint
            leave(mesh[0], number)
            start_all(mesh)
            refused = mesh.ctl("resume", run, "--set", f"steps={100000}").ends(4, "some nodes continued without the others", "node-c has step ", "--from 0")
            self.assertEqual(mesh.run(run)["state"], "INTERRUPTED")
            # What it says helps.
            newest = max((path for path in glob.glob(mesh[0].run_file(run, "*.safetensors")) if "model" not in path), key=self.step_of)
            for node in mesh.nodes[1:]:
                shutil.copy(newest, node.run_file(run, os.path.basename(newest)))
            answer = mesh.ctl_ok("resume", run, "--detach", node=1)
            step = int(answer.err.split("resumes at step ")[1].split()[0])
            self.assertIn(f"node-a has step {step}", refused.err)
            self.assertGreater(step, change.start)
            mesh.wait_for_step(run, step + 5)
            self.assertEqual([member["node"] for member in mesh.run(run)["members"]], ["node-a", "node-b", "node-c"])
            mesh.ctl_ok("stop", run)
            mesh.wait_ended(run)
            self.assertEqual(len({member["digest"] for member in mesh.run(run)["members"]}), 1)

    @staticmethod
    def step_of(path):
        return int(read_safetensors(path)[1]["step"])

    def test_shut_down_long_after_the_other(self):
        self.went_on_without(signal.SIGTERM, "0s")

    def test_killed_long_after_the_other(self):
        self.went_on_without(signal.SIGKILL, "50ms")


if __name__ == "__main__":
    unittest.main()
