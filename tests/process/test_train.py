"""start, status and fetch, end to end, with real processes."""

import json
import math
import os
import time
import unittest

from changes import seconds_of
from files import read_metrics, read_safetensors
from mesh import Mesh

# As torch's nn.Module of the same network names and lays them out.
LENET = {
    "conv1.weight": (20, 1, 5, 5),
    "conv1.bias": (20,),
    "conv2.weight": (50, 20, 5, 5),
    "conv2.bias": (50,),
    "fc1.weight": (500, 2450),
    "fc1.bias": (500,),
    "fc2.weight": (10, 500),
    "fc2.bias": (10,),
}
FETCHED = ["members.json", "metrics.jsonl", "model-raw.safetensors", "model.json", "model.safetensors", "predict.py", "report.html", "run.json", "views.jsonl"]

STATUS_FIELDS = {"schema_version", "nodes", "runs"}
NODE_FIELDS = {"name", "address", "state", "problem", "compute"}
RUN_FIELDS = {
    "id", "state", "reason", "model", "exchange", "coding", "step", "steps", "loss", "evaluation", "samples_per_second",
    "started", "since", "seconds_left", "code_bits_per_parameter", "sent_bits_per_parameter", "sent_bytes_per_step", "zeros", "digest", "digest_step", "members",
    "lineage", "from_step", "view", "view_step", "view_since", "left", "next",
    "training_samples", "global_batch", "data_read", "data_warnings", "settings", "last_layer", "best_accuracy", "best_step",
}  # fmt: skip
EVALUATION_FIELDS = {"step", "accuracy", "accuracy_5", "loss"}
MEMBER_FIELDS = {"node", "state", "phase", "step", "digest", "digest_step", "wait_share", "save", "problem", "holds_up", "samples", "data_wait_share", "waiting_share", "states", "seniority"}


def as_number(digest):
    return int(digest, 16)


class FourNodes(unittest.TestCase):
    def check_completed(self, status, run, steps):
        self.assertEqual(set(status), STATUS_FIELDS)
        self.assertEqual(status["schema_version"], 1)
        for node in status["nodes"]:
            self.assertEqual(set(node), NODE_FIELDS)
            self.assertEqual(node["state"], "up", node)
        (shown,) = status["runs"]
        self.assertEqual(set(shown), RUN_FIELDS)
        self.assertEqual((shown["id"], shown["state"], shown["reason"]), (run, "COMPLETED", ""))
        self.assertEqual((shown["model"], shown["step"], shown["steps"]), ("lenet", steps, steps))
        self.assertEqual(set(shown["evaluation"]), EVALUATION_FIELDS)
        self.assertEqual(shown["evaluation"]["step"], steps)
        self.assertTrue(0 <= shown["evaluation"]["accuracy"] <= shown["evaluation"]["accuracy_5"] <= 1, shown["evaluation"])
        self.assertGreater(shown["evaluation"]["accuracy_5"], 0, "five of ten classes")
        self.assertTrue(0 < shown["loss"] < 20, shown["loss"])
        self.assertGreater(shown["samples_per_second"], 0)
        self.assertTrue(0 < shown["zeros"] < 1)
        # A raw mask is one bit per parameter, signs of the others come on top; each goes to one owner, but our own.
        self.assertTrue(0.3 < shown["code_bits_per_parameter"] < 2.1, shown)  # entropy of 95 % zeros; two planes
        self.assertTrue(0.5 < shown["sent_bits_per_parameter"] < 32, shown)
        bits = 8 * shown["sent_bytes_per_step"] / sum(math.prod(shape) for shape in LENET.values())
        self.assertAlmostEqual(shown["sent_bits_per_parameter"], bits, delta=0.001 * bits)
        for member in shown["members"]:
            self.assertEqual(set(member), MEMBER_FIELDS)
            self.assertEqual((member["state"], member["step"]), ("COMPLETED", steps), member)
            self.assertEqual(member["digest"], shown["digest"], member)
        self.assertEqual([member["node"] for member in shown["members"]], ["node-a", "node-b", "node-c", "node-d"])
        return shown

    def check_fetched(self, folder, shown, steps):
        self.assertEqual(sorted(os.listdir(folder)), FETCHED)
        with open(os.path.join(folder, "run.json")) as file:
            record = json.load(file)
        self.assertEqual((record["id"], record["state"], record["step"]), (shown["id"], "COMPLETED", steps))
        self.assertEqual(as_number(record["digest"]), as_number(shown["digest"]))
        self.assertEqual(record["members"], ["node-a", "node-b", "node-c", "node-d"])
        self.assertEqual(record["spec"]["global-batch"], "16")
        for name in ("spec", "model", "data"):
            self.assertGreater(as_number(record["hashes"][name]), 0)
        self.assertTrue(record["own"]["engine_build"] and record["own"]["kernels"] and record["build"], record)
        self.assertEqual(record["own"]["threads"], 1)

        metrics = read_metrics(os.path.join(folder, "metrics.jsonl"))
        self.assertEqual([row["step"] for row in metrics], list(range(1, steps + 1)))
        for row in metrics:
            self.assertTrue({"step", "loss", "learning_rate", "sent_bytes", "zeros"} <= set(row), row)
            self.assertTrue(row["loss"] > 0 and row["sent_bytes"] > 0 and 0 < row["zeros"] < 1, row)
            self.assertAlmostEqual(row["samples_per_second"], 16 / row["seconds"], delta=0.001 * row["samples_per_second"])
            self.assertTrue(0.1 < row["code_bits_per_parameter"] < row["sent_bits_per_parameter"] < 32, row)
        times = [seconds_of(row["time"]) for row in metrics]
        self.assertEqual(times, sorted(times))
        self.assertTrue(seconds_of(record["started"]) <= times[0] and times[-1] <= time.time(), (record["started"], times[0], times[-1]))
        self.assertEqual([row["step"] for row in metrics if "accuracy" in row], [steps // 2, steps])
        for key in ("accuracy", "accuracy_5"):
            self.assertEqual(metrics[-1][key], shown["evaluation"][key])
            self.assertEqual(record["evaluation"][key], shown["evaluation"][key])

        for name in ("model.safetensors", "model-raw.safetensors"):
            tensors, metadata = read_safetensors(os.path.join(folder, name))
            self.assertEqual({key: tensor.shape for key, tensor in tensors.items()}, LENET, name)
            self.assertEqual(metadata["step"], str(steps))
            for key, tensor in tensors.items():
                self.assertTrue(all(map(math.isfinite, tensor.values)), f"{name}: {key}")
                self.assertGreater(len(set(tensor.values)), 1, f"{name}: {key} is constant")
        return record

    def test_start_status_fetch(self):
        steps = 20
        job = {"steps": steps, "evaluate-every": steps // 2}
        with Mesh(4) as mesh:
            run = mesh.start(job)
            mesh.wait_ended(run)
            shown = self.check_completed(mesh.status(run), run, steps)
            record = self.check_fetched(mesh.fetch(run, node=2), shown, steps)
            self.assertNotEqual(as_number(record["initial_digest"]), as_number(shown["digest"]))

            other = mesh.start(job | {"seed": 2}, node=3)
            digests = {member["digest"] for member in mesh.run(other)["members"]}
            self.assertEqual(len(digests), 1, digests)
            self.assertNotIn(shown["digest"], digests, "another seed, the same digest")
            self.assertEqual([one["id"] for one in mesh.status()["runs"]], [other, run], "newest first")

            # What ended is there after a restart, too, and nothing is overwritten unless asked.
            mesh.restart()
            mesh.wait_whole(run)
            again = mesh.fetch(run, node=1)
            average, parameters = (read_safetensors(os.path.join(again, name))[0] for name in ("model.safetensors", "model-raw.safetensors"))
            self.assertNotEqual(average, parameters, "the average equals the parameters")
            mesh.ctl("fetch", run, "-o", again).ends(1, "--force")
            mesh.ctl_ok("fetch", run, "-o", again, "--force")


class ShortRun(unittest.TestCase):
    """Twenty steps of four nodes with both exchanges' threads at work: what the thread sanitizer looks at."""

    def test_twenty_steps(self):
        with Mesh(4) as mesh:
            run = mesh.start({"steps": 20, "evaluate-every": 10}, patience=240)
            self.assertEqual(len({member["digest"] for member in mesh.run(run)["members"]}), 1)
            for node in mesh.nodes:
                self.assertEqual(node.end(), 0, f"{node.name}, log {node.log}")


if __name__ == "__main__":
    unittest.main()
