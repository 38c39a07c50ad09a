"""tgctl export: a run's metrics as a table, and as TensorBoard's events, which TensorBoard's own package reads, where it is."""

import csv
import json
import os
import subprocess
import sys
import unittest

from changes import seconds_of
from files import read_metrics
from mesh import Mesh

READ_SECONDS = 120
READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0}).Reload()
json.dump({tag: [(one.wall_time, one.step, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}, sys.stdout)
"""


def python_with_tensorboard():
    folder = os.path.join(os.environ.get("TGD_BUILD", "build"), "tensorboard")
    for python in (sys.executable, os.path.join(folder, "bin", "python")):
        if os.path.exists(python) and subprocess.run([python, "-c", "import tensorboard"], capture_output=True, check=False).returncode == 0:
            return python
    raise unittest.SkipTest(f"tensorboard is not there: python3 -m venv {folder} && {folder}/bin/pip install tensorboard")


def flat(row):
    """The row's values under the names that the table and the events have."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from ((f"{key}/{inner}", one) for inner, one in value.items())
        else:
            yield key, value


def value_of(cell):
    """What a cell of the table says: a number where it is one."""
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def exported(mesh, source, format, name, *options):
    """The path of the file that is written."""
    folder = os.path.join(mesh.folder, name)
    path = mesh.ctl_ok("export", source, "--to", format, "-o", folder, *options).out.strip()
    assert os.listdir(folder) == [os.path.basename(path)], f"{path} and {os.listdir(folder)}"
    return path


class Export(unittest.TestCase):
    def test_a_table(self):
        with Mesh(2) as mesh:
            run = mesh.start({"steps": 12, "evaluate-every": 6})
            fetched = mesh.fetch(run)
            rows = read_metrics(os.path.join(fetched, "metrics.jsonl"))
            path = exported(mesh, run, "csv", "of-run")
            with open(path, newline="") as file:
                table = list(csv.DictReader(file))
            # By value: a number may be written with a digit more than Python writes.
            self.assertEqual([{key: value_of(text) for key, text in line.items() if text} for line in table], [dict(flat(row)) for row in rows])
            self.assertEqual([line["step"] for line in table if line["accuracy"]], ["6", "12"])
            with open(path) as one, open(exported(mesh, fetched, "csv", "of-folder")) as other:
                self.assertEqual(one.read(), other.read())
            mesh.ctl("export", run, "--to", "csv", "-o", os.path.dirname(path)).refuses(1, f"{path} already exists; --force replaces it")
            exported(mesh, "@last", "csv", "of-run", "--force")

            # A run that was stopped early can be exported; an active run has to end first.
            going = mesh.detach({"steps": 100000})
            mesh.wait_for_step(going, 5)
            mesh.ctl("export", going, "--to", "csv", "-o", os.path.join(mesh.folder, "going")).refuses(1, "RUNNING", f"tgctl stop {going}")
            mesh[1].kill()
            mesh.ctl("stop", going)
            exported(mesh, going, "csv", "stopped")
            mesh.ctl("export", "no-such-run", "--to", "csv", "-o", os.path.join(mesh.folder, "none")).refuses(4, "no-such-run")


class TensorBoard(unittest.TestCase):
    def test_it_reads_the_events(self):
        python = python_with_tensorboard()
        with Mesh(2) as mesh:
            run = mesh.start({"steps": 12, "evaluate-every": 6})
            rows = read_metrics(os.path.join(mesh.fetch(run), "metrics.jsonl"))
            path = exported(mesh, run, "tensorboard", "board/first")
            read = subprocess.run([python, "-c", READ, os.path.dirname(path)], capture_output=True, text=True, timeout=READ_SECONDS)
            self.assertEqual(read.returncode, 0, read.stderr)
            scalars = json.loads(read.stdout)
            expected = {}
            for row in rows:
                for key, value in flat(row):
                    if key not in ("step", "time"):
                        expected.setdefault(key, []).append((seconds_of(row["time"]), row["step"], value))
            self.assertEqual(set(scalars), set(expected))
            self.assertLessEqual({"loss", "learning_rate", "zeros", "code_bits_per_parameter", "samples_per_second", "accuracy", "evaluation_loss"}, set(scalars))
            for tag, events in expected.items():
                self.assertEqual([(time, step) for time, step, _ in scalars[tag]], [(time, step) for time, step, _ in events], tag)
                for (_, _, read_value), (_, _, value) in zip(scalars[tag], events):
                    self.assertAlmostEqual(read_value, value, delta=1e-6 * abs(value), msg=tag)  # float32


if __name__ == "__main__":
    unittest.main()
