"""A run whose nodes have all gone goes on with `tgctl resume`, and ends with the bits of one that was never interrupted."""

import glob
import os
import shutil
import signal
import unittest

from disks import SmallDisks
from files import write_cifar10
from mesh import Mesh
from patience import wait_until
from resuming import RECIPES, job_of, kill_all, start_all, intervals, wait_for_checkpoint, whole

SLOW = {"steps": 2000, "checkpoint-every": "50ms"}  # no test waits for its end


def interrupt(mesh, job, after=1, how=kill_all):
    """A run of this job, killed after all have a checkpoint of that step; all nodes are back. Its id."""
    run = mesh.detach(job)
    wait_for_checkpoint(mesh, run, after)
    how(mesh)
    start_all(mesh)
    return run


def end_all(mesh):
    for node in mesh.nodes:
        node.signal(signal.SIGTERM)
    for node in mesh.nodes:
        node.wait()


def checkpoints(node, run):
    """The newest first."""
    return sorted(glob.glob(node.run_file(run, "checkpoint-*.safetensors")), reverse=True)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def step_of(name):
    return int(name.split("-")[-1].split(".")[0])


def tear(path):
    """Leaves the file as a killed writer does."""
    os.truncate(path, os.path.getsize(path) // 2)
    os.rename(path, path + ".partial")


def flip(path):
    with open(path, "r+b") as file:
        file.seek(-100, os.SEEK_END)
        byte = file.read(1)
        file.seek(-100, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))


def blank_the_end(path):
    """Leaves the file as a file system may that lost its power."""
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 4096)
        file.truncate(os.path.getsize(path) + 4096)


def exchange_with_an_older_one(path):
    shutil.copy(sorted(glob.glob(os.path.join(os.path.dirname(path), "checkpoint-*.safetensors")))[0], path)


# What may have happened to a checkpoint, and what is said of it after its name.
ON_THE_DISK = [
    (tear, ".partial was abandoned while it was written"),
    (lambda path: os.truncate(path, os.path.getsize(path) // 2), " is damaged: "),
    (lambda path: os.truncate(path, 0), " is damaged: "),
    (blank_the_end, " is damaged: its values have another hash"),
    (flip, " is damaged: its values have another hash"),
    (exchange_with_an_older_one, " has another state than its name says"),
    (os.unlink, ""),
]


class Killed(unittest.TestCase):
    def go_on(self, name):
        with Mesh(2) as mesh:
            digest = whole(mesh, mesh.start(job_of(name, mesh.folder)))
            run = interrupt(mesh, job_of(name, mesh.folder), after=RECIPES[name]["steps"] // 4)
            shown = mesh.run(run)
            self.assertEqual(shown["state"], "INTERRUPTED")
            self.assertIn(f"tgctl resume {run}", mesh.ctl_ok("status", run).out)
            mesh.ctl("wait", run).ends(10, f"tgctl resume {run}")
            mesh.ctl_ok("resume", run, node=1)
            self.assertEqual(mesh.run(run)["state"], "COMPLETED")
            self.assertEqual(whole(mesh, run), digest)
            first, second = intervals(mesh[0], run)
            self.assertEqual((first["lineage"], second["lineage"]), (1, 2))
            self.assertGreater(second["from"]["step"], 0)
            self.assertEqual(second["ended"].split(":")[0], "COMPLETED")
            self.assertNotEqual(first["key"], second["key"])

    # LeNet: test_kills.
    def test_cifarnet(self):
        self.go_on("cifarnet")

    def test_resnet(self):
        self.go_on("resnet-20")


class Ways(unittest.TestCase):
    """What a resume may begin with."""

    def test_before_the_first_checkpoint(self):
        """Three times: the second time the beginning is a file, the third time one node was killed before it had written it."""
        job = {"steps": 60, "checkpoint-every": "0s", "evaluate-every": 10}
        with Mesh(2) as mesh:
            digest = whole(mesh, mesh.start(job))
            follower = mesh.follow("start", mesh.job_file(job))
            run = follower.first_line()
            for death in range(3):
                mesh.wait_for_step(run, 5)
                kill_all(mesh)
                follower.finish()
                for path in checkpoints(mesh[1], run) if death == 2 else []:
                    os.unlink(path)
                start_all(mesh)
                follower = mesh.follow("resume", run)
                self.assertEqual(follower.first_line(), run)
            follower.finish().ends(0)
            self.assertEqual(whole(mesh, run), digest)
            self.assertEqual([line["from"]["step"] for line in intervals(mesh[0], run)], [0, 0, 0, 0])

    def test_shut_down_train_on_and_back(self):
        with Mesh(2) as mesh:
            digest = whole(mesh, mesh.start({"steps": 50}))
            longer = whole(mesh, mesh.start({"steps": 80}))
            # A shutdown leaves the state of the step that it came in: no checkpoint is needed.
            follower = mesh.follow("start", mesh.job_file({"steps": 50, "checkpoint-every": "0s"}))
            run = follower.first_line()
            mesh.wait_for_step(run, 5)
            end_all(mesh)
            follower.finish()
            start_all(mesh)
            self.assertEqual(mesh.run(run)["state"], "INTERRUPTED")
            mesh.ctl_ok("resume", run)
            self.assertGreaterEqual(intervals(mesh[0], run)[1]["from"]["step"], 5)
            self.assertEqual(whole(mesh, run), digest)
            # Train on.
            mesh.ctl("resume", run).ends(1, "COMPLETED", "--set steps=")
            mesh.ctl("resume", run, "--set", "model=mlp").ends(2, "model")
            mesh.ctl_ok("resume", run, "--set", "steps=80")
            self.assertEqual(whole(mesh, run), longer)
            # And back, with the same end.
            mesh.ctl("resume", run, "--from", "7").ends(4, "not every node has the state of step 7")
            mesh.ctl_ok("resume", run, "--from", "0")
            self.assertEqual(whole(mesh, run), longer)
            self.assertEqual([line["lineage"] for line in intervals(mesh[1], run)], [1, 2, 3, 4])

    def test_at_a_node_that_was_wiped(self):
        """It has heard of the run, and has one that has it resume it."""
        with Mesh(3) as mesh:
            run = mesh.start({"steps": 12, "join-limit": None})
            mesh[0].signal(signal.SIGTERM)
            mesh[0].wait()
            shutil.rmtree(mesh[0].state_dir)
            mesh[0].start()
            mesh.wait_ready()
            rows = {member["node"]: member for member in mesh.run(run)["members"]}
            self.assertEqual((rows["node-a"]["save"], rows["node-a"]["problem"], rows["node-b"]["save"]), ("-", "has no copy of the run", "saved"))
            mesh.ctl_ok("resume", run, "--set", "steps=30", "--detach")
            mesh.ctl_ok("wait", run)
            shown = mesh.run(run)
            self.assertEqual((shown["state"], shown["step"], shown["lineage"]), ("COMPLETED", 30, 2))


class ByThemselves(unittest.TestCase):
    """The nodes go on with what was interrupted. (Killed at any moment: test_kills.)"""

    def test_as_soon_as_all_are_back(self):
        job = {"steps": 80, "checkpoint-every": "200ms", "auto-resume": "true"}
        with Mesh(2) as mesh:
            digest = whole(mesh, mesh.start(job))
            run = interrupt(mesh, job, after=10)
            wait_until(lambda: f"{run} goes on by itself: {mesh.run(run)}", lambda: mesh.run(run)["state"] == "COMPLETED", 120)
            self.assertEqual(whole(mesh, run), digest)

    def test_unless_a_start_repeats_in_vain(self):
        """Until all nodes are back, status names those that are not; a job that kills its nodes is begun three times more, no oftener."""
        job = {"steps": 60, "checkpoint-every": "0s", "auto-resume": None}
        with Mesh(2) as mesh:
            digest = whole(mesh, mesh.start(job))
            mesh.configure(0, fault="kill@reduce:20")
            mesh.restart([0])
            run = mesh.detach(job)
            for times in range(1 + 3):
                self.assertEqual(mesh[0].wait(), -signal.SIGKILL, f"time {times}: log {mesh[0].log}")
                mesh[1].kill()
                mesh[0].start()
                if times == 0:
                    wait_until(lambda: f"the node that it waits for is named: {self.next_of(mesh, run)}", lambda: "missing: node-b" in self.next_of(mesh, run))
                    mesh.ctl("wait", run).ends(10, "resumes automatically when its members return (missing: node-b)")
                mesh[1].start()
            wait_until(lambda: f"it does not go on: {self.next_of(mesh, run)}", lambda: f"without reaching its next checkpoint; tgctl resume {run}" in self.next_of(mesh, run))
            self.assertEqual([line["lineage"] for line in intervals(mesh[0], run)], [1, 2, 3, 4])
            mesh.configure(0, fault=None)
            mesh.restart([0])
            mesh.ctl_ok("resume", run)
            self.assertEqual(whole(mesh, run), digest)

    def next_of(self, mesh, run):
        return mesh.run(run)["next"]


class KilledAgain(unittest.TestCase):
    """A node is killed while its run is about to go on: that is said, nothing is lost, and the next resume ends as ever."""

    JOB = {"steps": 120, "checkpoint-every": "200ms"}

    def test_at_every_moment(self):
        with Mesh(2) as mesh:
            digest = whole(mesh, mesh.start(self.JOB))
            run = interrupt(mesh, self.JOB, after=20)
            # Proposed, and not heard yet: node-b is stopped.
            mesh[1].signal(signal.SIGSTOP)
            follower = mesh.follow("resume", run)
            wait_until("it is proposed", lambda: mesh.run(run)["state"] == "STARTING")
            mesh[1].kill()
            follower.finish().ends(1, "node-a lost the connection to node-b")
            self.come_back(mesh, 1, run, "INTERRUPTED")
            # While they prepare it: a member, and the one that was asked.
            for victim, said in ((1, (1, "node-a lost the connection to node-b")), (0, (3, "no tgd answers at ", " any longer"))):
                mesh.configure(victim, fault="kill@prepare:0")
                mesh.restart([victim])
                follower = mesh.follow("resume", run)
                self.assertEqual(mesh[victim].wait(), -signal.SIGKILL)
                follower.finish().ends(*said)
                self.come_back(mesh, victim, run, "INTERRUPTED")
            # In its first steps: the other one goes on.
            begins = min(step_of(checkpoints(node, run)[0]) for node in mesh.nodes)
            mesh.configure(1, fault=f"kill@reduce:{begins + 1}")
            mesh.restart([1])
            follower = mesh.follow("resume", run)
            self.assertEqual(follower.first_line(), run)
            self.assertEqual(mesh[1].wait(), -signal.SIGKILL)
            follower.finish().ends(0, "with 1 of 2 members: node-b left", "COMPLETED")
            mesh.configure(1, fault=None)
            mesh[1].start()
            mesh.wait_ready()
            wait_until("node-b hears of the end", lambda: mesh.run(run, node=1)["state"] == "COMPLETED")
            mesh.ctl_ok("resume", run, "--from", "0")
            self.assertEqual(whole(mesh, run), digest)

    def come_back(self, mesh, victim, run, state):
        """Nothing was lost: every node says so, and how to go on."""
        mesh.configure(victim, fault=None)
        mesh[victim].start()
        mesh.wait_ready()
        for index, node in enumerate(mesh.nodes):
            wait_until(lambda: f"{node.name} says {state}: {mesh.run(run, node=index)}", lambda: mesh.run(run, node=index)["state"] == state)
            self.assertIn("resume points ", mesh.ctl_ok("status", run, node=index).out)


class Damage(unittest.TestCase):
    """Nothing is lost by what cannot be read, and the message says what to do."""

    def test_files(self):
        """Each kind alone: a state that is asked for is refused by name, and all stays as it was. All at once: what is older
        and whole is taken."""
        with Mesh(2) as mesh:
            run, kept = self.interrupt_with_many(mesh, len(ON_THE_DISK) + 1)
            newest, before = kept[-1], step_of(kept[-2])
            for damage, why in ON_THE_DISK:
                with self.subTest(why=why):
                    damage(mesh[1].run_file(run, newest))
                    self.refuses(mesh, run, step_of(newest), f"node-b has step {before}", newest + why if why else "")
                    if os.path.exists(mesh[1].run_file(run, newest + ".partial")):
                        os.unlink(mesh[1].run_file(run, newest + ".partial"))
                    self.put_back(mesh, run, newest)
            steps = min(set(range(1, 100)) - set(map(step_of, kept)))
            other = mesh.start({"steps": steps, "seed": 9})
            foreign = mesh[1].run_file(run, f"checkpoint-000001-000001-{steps:010}.safetensors")
            shutil.copy(mesh[1].run_file(other, "state.safetensors"), foreign)
            self.refuses(mesh, run, steps, f"{os.path.basename(foreign)} belongs to another run, {other}")
            os.unlink(foreign)
            damaged = list(zip(reversed(kept), ON_THE_DISK))
            for name, (damage, _) in damaged:
                damage(mesh[1].run_file(run, name))
            said = len(mesh[1].log_text())
            mesh.ctl_ok("resume", run, "--detach")
            refused = "".join(line for line in mesh[1].log_text()[said:].splitlines() if "event=state-rejected" in line)
            for name, (_, why) in damaged:
                self.assertEqual(name in refused, bool(why), f"{name}, {why}: {refused}")
            whole_one = step_of(kept[-1 - len(ON_THE_DISK)])
            mesh.wait_for_step(run, whole_one + 1)
            kill_all(mesh)
            # What was further, of the lineage before, was given up with that.
            self.put_back(mesh, run, newest)
            start_all(mesh)
            self.assertEqual(intervals(mesh[1], run)[-1]["from"]["step"], whole_one)
            wait_until("each record has the other's end", lambda: all([one["save"] for one in node.record(run)["others"].values()] == ["saved"] for node in mesh.nodes))
            self.refuses(mesh, run, step_of(newest), f"{newest} was given up when the run was resumed from an earlier state")

    def refuses(self, mesh, run, step, *words):
        """A resume from that step, with these words, a way out, and without any change."""
        def all_files():
            return [read(node.run_file(run, name)) for node in mesh.nodes for name in ("run.json", "views.jsonl")]

        before = all_files()
        mesh.ctl("resume", run, "--from", step).ends(4, f"not every node has the state of step {step}", "choose with --from", *words)
        wait_until("the run is again what it was", lambda: mesh.run(run)["state"] == "INTERRUPTED")
        self.assertEqual(all_files(), before)

    def interrupt_with_many(self, mesh, count):
        """A run that all nodes were killed in, with so many checkpoints that all have, more than a node keeps; their names."""
        run = mesh.detach(SLOW)

        def names():
            for node in mesh.nodes:
                folder = os.path.join(mesh.folder, "kept", node.name)
                os.makedirs(folder, exist_ok=True)
                for path in checkpoints(node, run):
                    try:
                        os.link(path, os.path.join(folder, os.path.basename(path)))
                    except (FileExistsError, FileNotFoundError):
                        pass  # it is kept already, or has just gone
            return sorted(set.intersection(*(set(os.listdir(os.path.join(mesh.folder, "kept", node.name))) for node in mesh.nodes)))

        wait_until(lambda: f"{count} checkpoints that all have, not {names()}", lambda: len(names()) >= count)
        kill_all(mesh)
        kept = names()
        for node in mesh.nodes:
            for path in checkpoints(node, run):
                os.unlink(path)
        for name in kept:
            self.put_back(mesh, run, name)
        start_all(mesh)
        return run, kept

    @staticmethod
    def put_back(mesh, run, name):
        for node in mesh.nodes:
            shutil.copy(os.path.join(mesh.folder, "kept", node.name, name), node.run_file(run, name))

    def test_after_changes(self):
        with Mesh(2) as mesh:
            folder = os.path.join(mesh.folder, "data")
            write_cifar10(folder, per_batch=16)
            run = interrupt(mesh, job_of("cifarnet", mesh.folder, data_dir=folder, steps=5000), after=3)
            # Another data set.
            write_cifar10(folder, per_batch=16, seed=2)
            mesh.ctl("resume", run).ends(2, "the data is not what the run began with")
            wait_until("the start that did not come is over", lambda: mesh.run(run)["state"] == "INTERRUPTED")
            write_cifar10(folder, per_batch=16)
            # A missing node.
            mesh[1].end()
            mesh.ctl("resume", run, "--set", "start-timeout=2s").ends(5, "node-b")
            wait_until("the start that did not come is over", lambda: mesh.run(run)["state"] == "INTERRUPTED")
            # One whose state directory was emptied.
            shutil.rmtree(mesh[1].state_dir)
            mesh[1].start()
            mesh.wait_ready()
            mesh.ctl("resume", run).ends(4, "node-b has no run")
            wait_until("the start that did not come is over", lambda: mesh.run(run)["state"] == "INTERRUPTED")
            self.assertTrue(checkpoints(mesh[0], run))


class FullDisks(unittest.TestCase):
    """A disk that is full costs checkpoints, and neither the run nor a state that it has."""

    JOB = {"steps": 160, "checkpoint-every": "50ms"}

    def test_training_goes_on(self):
        with SmallDisks(2) as mesh:
            if mesh.why_not:
                self.skipTest(mesh.why_not)
            run = mesh.detach(self.JOB | {"steps": 100000})
            wait_for_checkpoint(mesh, run)
            mesh.fill(mesh[1])
            wait_until("node-a tells what node-b warns of", lambda: "node-b could not write the checkpoint of step" in mesh.run(run)["reason"])
            self.assertIn("No space left on device", mesh.run(run)["reason"])
            self.assertIn("event=checkpoint-failed", mesh[1].log_text())
            kept = {path: read(path) for path in checkpoints(mesh[1], run)}
            at = mesh.run(run)["step"]
            mesh.wait_for_step(run, at + 20)
            self.assertEqual({path: read(path) for path in checkpoints(mesh[1], run)}, kept)
            mesh.free(mesh[1])
            wait_until("no node warns any more", lambda: not mesh.run(run)["reason"])
            wait_until("the next one is written", lambda: not set(kept) & set(checkpoints(mesh[1], run)))
            mesh.ctl_ok("stop", run)
            # A run that has room for none comes to its end, too.
            mesh.wait_ended(run)
            mesh.fill(mesh[1], room=2 << 20)
            run = mesh.ctl("start", mesh.job_file(self.JOB)).ends(6, "COMPLETED", "node-b could not save", "No space left on device").out.strip()
            self.assertEqual(mesh.run(run)["state"], "COMPLETED")
            self.assertEqual(mesh[1].log_text().count("event=checkpoint run=" + run), 0)

    def test_resume(self):
        with SmallDisks(2) as mesh:
            if mesh.why_not:
                self.skipTest(mesh.why_not)
            digest = whole(mesh, mesh.start(self.JOB))
            run = interrupt(mesh, self.JOB, after=20)
            mesh.fill(mesh[1])
            kept = {path: read(path) for path in checkpoints(mesh[1], run)}
            for _ in range(2):  # a second one has the same to go on from
                mesh.ctl("resume", run).ends(5, "node-b: cannot write", "No space left on device")
                mesh.wait_ended(run)
            self.assertEqual({path: read(path) for path in checkpoints(mesh[1], run)}, kept)
            mesh.free(mesh[1])
            mesh.ctl_ok("resume", run)
            self.assertEqual(whole(mesh, run), digest)
