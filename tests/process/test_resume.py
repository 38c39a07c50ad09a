"""A run whose nodes have all gone goes on with `tgctl resume`, and ends with the bits of one that was never interrupted."""

import glob
import os
import shutil
import signal
import unittest

from files import read_metrics, write_cifar10
from mesh import Mesh
from patience import wait_until
from resuming import RECIPES, job_of, kill_all, start_all, stretches, wait_for_checkpoint, whole

SLOW = {"steps": 2000, "checkpoint-every": "50ms"}  # nobody waits for its end


def interrupt(mesh, job, after=1, how=kill_all):
    """A run of this job, killed after all have a checkpoint of that step; all nodes are back. Its id."""
    follower = mesh.follow("start", mesh.job_file(job))
    run = follower.first_line()
    wait_for_checkpoint(mesh, run, after)
    how(mesh)
    follower.finish()
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
            first, second = stretches(mesh[0], run)
            self.assertEqual((first["lineage"], second["lineage"]), (1, 2))
            self.assertGreater(second["from"]["step"], 0)
            self.assertEqual(second["ended"].split(":")[0], "COMPLETED")
            self.assertNotEqual(first["key"], second["key"])

    def test_lenet(self):
        self.go_on("lenet")

    def test_cifarnet(self):
        self.go_on("cifarnet")

    def test_resnet(self):
        self.go_on("resnet-20")


class Ways(unittest.TestCase):
    """What a resume may begin with."""

    def test_before_the_first_checkpoint(self):
        """Twice: the second time the beginning is a file."""
        job = {"steps": 120, "checkpoint-every": "0s", "evaluate-every": 10}
        with Mesh(2) as mesh:
            digest = whole(mesh, mesh.start(job))
            follower = mesh.follow("start", mesh.job_file(job))
            run = follower.first_line()
            for _ in range(2):
                mesh.wait_for_step(run, 5)
                kill_all(mesh)
                follower.finish()
                start_all(mesh)
                follower = mesh.follow("resume", run)
                self.assertEqual(follower.first_line(), run)
            follower.finish().ends(0)
            self.assertEqual(whole(mesh, run), digest)
            self.assertEqual([line["from"]["step"] for line in stretches(mesh[0], run)], [0, 0, 0])

    def test_shut_down_train_on_and_back(self):
        with Mesh(3) as mesh:
            digest = whole(mesh, mesh.start({"steps": 80}))
            longer = whole(mesh, mesh.start({"steps": 160}))
            # A shutdown leaves the state of the step that it came in: no checkpoint is needed.
            follower = mesh.follow("start", mesh.job_file({"steps": 80, "checkpoint-every": "0s"}))
            run = follower.first_line()
            mesh.wait_for_step(run, 5)
            end_all(mesh)
            follower.finish()
            start_all(mesh)
            self.assertEqual(mesh.run(run)["state"], "INTERRUPTED")
            mesh.ctl_ok("resume", run)
            self.assertGreaterEqual(stretches(mesh[0], run)[1]["from"]["step"], 5)
            self.assertEqual(whole(mesh, run), digest)
            # Train on.
            mesh.ctl("resume", run).ends(1, "COMPLETED", "--set steps=")
            mesh.ctl("resume", run, "--set", "model=mlp").ends(2, "model")
            mesh.ctl_ok("resume", run, "--set", "steps=160")
            self.assertEqual(whole(mesh, run), longer)
            # And back, with the same end.
            mesh.ctl("resume", run, "--from", "7").ends(4, "not every node has the state of step 7")
            mesh.ctl_ok("resume", run, "--from", "0")
            self.assertEqual(whole(mesh, run), longer)
            self.assertEqual([line["lineage"] for line in stretches(mesh[2], run)], [1, 2, 3, 4])

    def test_by_themselves(self):
        job = {"steps": 240, "checkpoint-every": "50ms", "auto-resume": "true"}
        with Mesh(2) as mesh:
            digest = whole(mesh, mesh.start(job))
            run = interrupt(mesh, job, after=20)
            wait_until(lambda: f"{run} goes on by itself: {mesh.run(run)}", lambda: mesh.run(run)["state"] == "COMPLETED", 120)
            self.assertEqual(whole(mesh, run), digest)


class Damage(unittest.TestCase):
    """Nothing is lost by what cannot be read, and the message says what to do."""

    def test_files(self):
        with Mesh(2) as mesh:
            run = interrupt(mesh, SLOW, after=20)
            common = set(map(os.path.basename, checkpoints(mesh[0], run))) & set(map(os.path.basename, checkpoints(mesh[1], run)))
            if len(common) < 2:
                self.skipTest(f"the nodes have {common} in common, and the damage takes one")
            newest = sorted(common)[-1]
            damages = {"cut short": lambda path: os.truncate(path, os.path.getsize(path) // 2), "flipped": self.flip, "foreign": lambda path: self.foreign(mesh, path)}
            path = mesh[1].run_file(run, newest)
            shutil.copy(path, mesh.folder)
            for what, damage in damages.items():
                with self.subTest(what=what):
                    shutil.copy(os.path.join(mesh.folder, newest), path)
                    damage(path)
                    reply = mesh.ctl_ok("resume", run, "--detach")
                    wait_until(f"{newest} is refused by name", lambda: newest in mesh[1].log_text().split("event=state-refused")[-1])
                    self.assertIn(run, reply.out)
                    mesh.ctl_ok("stop", run)
                    mesh.wait_ended(run)
                    break  # it has gone on from the older one

    @staticmethod
    def flip(path):
        with open(path, "r+b") as file:
            file.seek(-100, os.SEEK_END)
            byte = file.read(1)
            file.seek(-100, os.SEEK_END)
            file.write(bytes([byte[0] ^ 1]))

    @staticmethod
    def foreign(mesh, path):
        other = mesh.start({"steps": 3, "seed": 9})
        shutil.copy(mesh[0].run_file(other, "state.safetensors"), path)

    def test_what_is_not_as_it_was(self):
        with Mesh(2) as mesh:
            folder = os.path.join(mesh.folder, "data")
            write_cifar10(folder, per_batch=16)
            run = interrupt(mesh, job_of("cifarnet", mesh.folder, data_dir=folder, steps=5000), after=3)
            # Another data set.
            write_cifar10(folder, per_batch=16, seed=2)
            mesh.ctl("resume", run).ends(2, "the data is not what the run began with")
            self.assertEqual(mesh.run(run)["state"], "INTERRUPTED")
            write_cifar10(folder, per_batch=16)
            # A missing node.
            mesh[1].end()
            mesh.ctl("resume", run, "--set", "start-timeout=2s").ends(5, "node-b")
            self.assertEqual(mesh.run(run)["state"], "INTERRUPTED")
            # One whose state directory was emptied.
            shutil.rmtree(mesh[1].state_dir)
            mesh[1].start()
            mesh.wait_ready()
            mesh.ctl("resume", run).ends(4, "node-b has no run")
            self.assertEqual(mesh.run(run)["state"], "INTERRUPTED")
            self.assertTrue(checkpoints(mesh[0], run))
