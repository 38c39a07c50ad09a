"""keep = best: model.safetensors is of the best evaluation, whatever happens to its members."""

import json
import os
import re
import unittest

from files import read_safetensors
from mesh import Mesh
from patience import wait_until
from resuming import kill_all, start_all, wait_for_checkpoint
from test_joins import MESH, Joining
from test_recompute import recompute

# Some evaluation gets all of so few samples right, and none after it is better: the first one stays the best.
JOB = {"steps": 100, "evaluate-every": 10, "data-test": 10, "learning-rate": 0.02, "ema": 0.9, "keep": "best",
       "exchange": "direct", "coding": "raw", "link-mbps": 1000}  # so that budgets can be compared

HUGE_PAGE = 2 << 20  # bytes; arrays of two and more take whole ones


class Keep(unittest.TestCase):
    def test_the_model_is_of_the_best_step(self):
        with Mesh(2) as mesh:
            run = mesh.start(JOB)
            shown = mesh.run(run)
            best = shown["best_step"]
            self.assertLess(best, JOB["steps"], shown)
            answer = mesh.ctl_ok("fetch", run, "-o", os.path.join(mesh.folder, "best"))
            self.assertIn(f"model.safetensors is from step {best}, the best evaluation (keep = best)", answer.err)
            folder = os.path.join(mesh.folder, "best")
            then, last = (mesh.fetch(mesh.start(JOB | {"keep": "last", "steps": steps})) for steps in (best, JOB["steps"]))

            def tensors(folder, name="model.safetensors"):
                return read_safetensors(os.path.join(folder, name))

            # A printed comparison of so many numbers would be of no use.
            self.assertTrue(tensors(folder)[0] == tensors(then)[0], f"the model is that of step {best}")
            self.assertFalse(tensors(folder)[0] == tensors(last)[0], "the model is that of the last step")
            self.assertTrue(tensors(folder, "model-raw.safetensors")[0] == tensors(last, "model-raw.safetensors")[0], "the rest is of the last step")
            self.assertEqual(tensors(folder)[1]["best-step"], str(best))
            for key in ("digest", "step"):
                self.assertEqual(tensors(folder)[1][key], tensors(last)[1][key], "it is of this run's end")
            with open(os.path.join(folder, "model.json")) as file:
                model = json.load(file)
            self.assertEqual((model["step"], model["evaluation"]["step"], model["evaluation"]["accuracy"]), (best, best, shown["best_accuracy"]))
            with open(os.path.join(folder, "report.html")) as file:
                self.assertIn(f"accuracy at step {best}, the best; model.safetensors is from this step", file.read())
            code, out, _ = recompute(folder)
            self.assertEqual(code, 0, out)

            # One more model in memory and in the copy for a checkpoint, and in each of four states on the disk.
            model_bytes = 4 * sum(len(values) for _, values in tensors(folder)[0].values())
            in_memory = -(-model_bytes // HUGE_PAGE) * HUGE_PAGE
            budgets = [tuple(int(re.search(f"{key}=([0-9]+)", line)[1]) for key in ("memory-bytes", "disk-bytes"))
                       for line in mesh[0].log_text().splitlines() if "event=run-started" in line]
            for more, expected in zip((budgets[0][i] - budgets[-1][i] for i in range(2)), (in_memory + model_bytes, 4 * model_bytes)):
                self.assertAlmostEqual(more, expected, delta=0.02 * expected)
            dry = [mesh.ctl_ok("start", mesh.job_file(JOB | {"keep": keep}), "--dry-run").out for keep in ("best", "last")]
            self.assertNotEqual(*(re.search(r"memory +(.*) per node", out)[1] for out in dry))

            mesh.ctl("start", mesh.job_file(JOB | {"evaluate-every": 0})).refuses(2, "keep = best needs evaluate-every")
            mesh.ctl("resume", run, "--set", "keep=last").refuses(2, "keep cannot change")


class Changes(Joining):
    def pass_evaluations(self, mesh, run):
        """Those of a member that has forgotten the best one would take its place."""
        mesh.wait_for_step(run, mesh.run(run)["step"] + 3 * JOB["evaluate-every"])

    def test_a_death_a_join_and_a_resume_change_nothing(self):
        with Mesh(3, MESH) as mesh:
            run = mesh.detach(JOB | {"steps": 1000000, "checkpoint-every": "200ms", "join-limit": "60s"})
            wait_until(lambda: f"all samples are right: {mesh.run(run)}", lambda: mesh.run(run)["best_accuracy"] == 1)
            best = mesh.run(run)["best_step"]
            self.kill(mesh[2])
            mesh[2].start()
            self.wait_until_all_are_in(mesh, run, 1)
            self.pass_evaluations(mesh, run)
            wait_for_checkpoint(mesh, run, mesh.run(run)["step"])
            kill_all(mesh)
            start_all(mesh)
            mesh.ctl_ok("resume", run, "--detach")
            self.wait_until_all_are_in(mesh, run, 0)
            self.pass_evaluations(mesh, run)
            self.finish(mesh, run, None)
            self.assertEqual(mesh.run(run)["best_step"], best)
            models = []
            for node in mesh.nodes:
                with open(node.run_file(run, "model.safetensors"), "rb") as file:
                    models.append(file.read())
            self.assertEqual(len(set(models)), 1, "the joiner, too, has the same file")
            then = mesh.start(JOB | {"keep": "last", "steps": best})
            kept, model = (read_safetensors(os.path.join(mesh.fetch(one), "model.safetensors"))[0] for one in (run, then))
            self.assertTrue(kept == model, f"the model is that of step {best}")


if __name__ == "__main__":
    unittest.main()
