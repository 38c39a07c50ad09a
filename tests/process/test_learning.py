"""How a run learns: a batch in parts, and from given parameters."""

import os
import shutil
import unittest

from files import read_metrics, read_safetensors, write_safetensors
from mesh import Mesh

# Floats, so that losses can be compared over some steps.
JOB = {"gradients": "float32", "steps": 6, "global-batch": 16, "ema": 0}


class Learning(unittest.TestCase):
    def end(self, mesh, job):
        """The run as it ended, and its metrics; all members hold one state."""
        run = mesh.start(job)
        mesh.wait_ended(run)
        ended = mesh.run(run)
        self.assertEqual(ended["state"], "COMPLETED", ended)
        digests = {member["node"]: member["digest"] for member in ended["members"]}
        self.assertEqual(len(set(digests.values())), 1, f"run {run}: {digests}")
        return ended, read_metrics(mesh[0].run_file(run, "metrics.jsonl"))

    def test_a_batch_in_parts(self):
        with Mesh(2) as mesh:
            whole, losses = self.end(mesh, JOB)
            parts, losses_of_parts = self.end(mesh, JOB | {"micro-batch": 2})
            for one, other in zip(losses, losses_of_parts):
                self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-4 * one["loss"])
            self.assertNotEqual(whole["digest"], parts["digest"], "sums round in another order: were there parts?")
            same, _ = self.end(mesh, JOB | {"micro-batch": 8})
            self.assertEqual(same["digest"], whole["digest"], "the whole of a member's part at once")

            # A last part of one sample, on one node only: 9 and 8 of 17.
            for batch, at_once in ((17, 4), (18, 4), (16, 9)):
                _, losses = self.end(mesh, JOB | {"global-batch": batch})
                _, losses_of_parts = self.end(mesh, JOB | {"global-batch": batch, "micro-batch": at_once})
                for one, other in zip(losses, losses_of_parts):
                    self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-4 * one["loss"])
            mesh.ctl("start", mesh.job_file(JOB | {"initial": "a.safetensors"})).refuses(2, "node-", "begins at data-dir, and this node has none")
            answer = mesh.ctl("start", mesh.job_file({"compute": "replay", "micro-batch": 4}))
            answer.refuses(2, "micro-batch = 4 needs compute = train")

    def test_from_given_parameters(self):
        """What was fetched is trained on, by nodes that each have a file of their own."""
        with Mesh(2) as mesh:
            first, losses = self.end(mesh, JOB | {"steps": 200})
            fetched = os.path.join(mesh.fetch(first["id"]), "model.safetensors")
            folders = [os.path.join(mesh.folder, f"data-{index}") for index in range(2)]
            for index, folder in enumerate(folders):
                os.makedirs(folder)
                shutil.copy(fetched, os.path.join(folder, "start.safetensors"))
                mesh.configure(index, data_dir=folder)
            mesh.restart()
            job = JOB | {"initial": "start.safetensors", "seed": 9}
            drawn, drawn_losses = self.end(mesh, job | {"initial": None})
            second, more_losses = self.end(mesh, job)
            self.assertLess(more_losses[0]["loss"], 0.5 * drawn_losses[0]["loss"])
            records = {run["id"]: mesh[0].record(run["id"]) for run in (first, drawn, second)}
            self.assertNotEqual(records[second["id"]]["initial_digest"], records[drawn["id"]]["initial_digest"])
            log = mesh.ctl_ok("logs", second["id"]).out
            self.assertIn(f"parameters from {folders[0]}/start.safetensors", log)
            by_path, _ = self.end(mesh, job | {"initial": fetched})
            self.assertEqual(by_path["digest"], second["digest"])

            # Another number of classes: the last layer is new.
            tensors, _ = read_safetensors(fetched)
            for name in ("fc2.weight", "fc2.bias"):
                shape, values = tensors[name]
                tensors[name] = ((7, *shape[1:]), values[: len(values) // 10 * 7])
            for folder in folders:
                write_safetensors(os.path.join(folder, "seven.safetensors"), tensors)
            seven, _ = self.end(mesh, job | {"initial": "seven.safetensors"})
            self.assertIn("fc2.weight (10x500, in the file 7x500), fc2.bias (10, in the file 7)", mesh.ctl_ok("logs", seven["id"]).out)

            # Mistakes: one node's file is another one, does not fit, is not there.
            write_safetensors(os.path.join(folders[1], "start.safetensors"), tensors)
            mesh.ctl("start", mesh.job_file(job)).refuses(2, "initial states differ", "if the job sets initial")
            answer = mesh.ctl("start", mesh.job_file(job | {"model": "lenet", "initial": "nothing"}))
            answer.refuses(2, "node-", "data-", "nothing", "No such file")
            tensors["conv1.weight"] = ((20, 1, 5, 4), tensors["conv1.weight"].values[:400])
            for folder in folders:
                write_safetensors(os.path.join(folder, "misfit.safetensors"), tensors)
            answer = mesh.ctl("start", mesh.job_file(job | {"initial": "misfit.safetensors"}))
            answer.refuses(2, "misfit.safetensors has conv1.weight of 20x1x5x4 where 20x1x5x5 is needed")

            # What is no file of tensors is not waited for, and what is not finite would end in the saved model.
            os.mkfifo(os.path.join(mesh.folder, "pipe"))
            with open(os.path.join(mesh.folder, "x.pt"), "wb") as file:
                file.write(b"PK\3\4" + bytes(100))
            tensors, _ = read_safetensors(fetched)
            tensors["fc1.weight"].values[17] = float("nan")
            write_safetensors(os.path.join(mesh.folder, "nan"), tensors)
            for name, words in (("pipe", "it is not a regular file"), ("x.pt", "safetensors.torch.save_file(model.state_dict()"),
                                ("nan", "a value that is not finite in fc1.weight, element 17")):
                file = mesh.job_file(job | {"initial": os.path.join(mesh.folder, name)})
                mesh.ctl("start", file, "--dry-run").refuses(2, "node-a: initial: ", words)
                mesh.ctl("start", file).refuses(2, words)
            mesh.ctl_ok("start", mesh.job_file(JOB), "--dry-run")


if __name__ == "__main__":
    unittest.main()
