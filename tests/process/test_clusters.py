"""The files for clusters: Kubernetes' manifest, as far as it can be checked without a cluster, and the sbatch script, with
one-line stand-ins for Slurm's commands on this machine."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from addresses import free_port_pair
from asking import TGCTL
from files import read_safetensors
from mesh import SMALL_JOB
from node import OF_TESTS, TGD
from patience import PATIENCE, wait_until

DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy")
MANIFEST = os.path.join(DEPLOY, "kubernetes", "tgd.yaml")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in OF_TESTS}


class Kubernetes(unittest.TestCase):
    def setUp(self):
        with open(MANIFEST) as file:
            self.text = file.read()

    def test_its_configuration_is_in_order_for_every_pod(self):
        block = re.search(r"tgd\.conf: \|\n((?:    .*\n)+)", self.text)[1]
        replicas = int(re.search(r"replicas: (\d+)", self.text)[1])
        self.assertEqual(block.count("peer = "), replicas)
        with tempfile.TemporaryDirectory() as folder:
            conf, key = os.path.join(folder, "tgd.conf"), os.path.join(folder, "cluster.key")
            subprocess.run([TGCTL, "keygen", key], check=True, capture_output=True)
            with open(conf, "w") as file:
                file.write(re.sub(r"(?m)^    ", "", block))
            for ordinal in range(replicas):
                checked = subprocess.run(
                    [TGD, "--config", conf, "--key-file", key, "--state-dir", folder, "--check-config"],
                    env=ENVIRONMENT | {"TGD_NODE": f"node-{ordinal}", "TGD_SERVICE_HOST": "None"}, capture_output=True, text=True,
                )  # fmt: skip
                complaints = checked.stderr.splitlines()
                self.assertEqual([line for line in complaints if "does not resolve" not in line], [], "beside the names, which pods alone can resolve")
                self.assertEqual(len(complaints), replicas)

    def test_schema(self):
        validate = shutil.which("kubernetes-validate")
        if validate is None:
            self.skipTest("kubernetes-validate is not installed (pip install kubernetes-validate)")
        checked = subprocess.run([validate, "--strict", MANIFEST], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


class Slurm(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tgd-slurm-")
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        for name, program in (("tgd", TGD), ("tgctl", TGCTL)):
            os.symlink(os.path.abspath(shutil.which(program)), os.path.join(self.bin, name))
        self.stand_in("scontrol", '[ "$1 $2" = "show hostnames" ] && echo LOCALHOST')
        self.stand_in("srun", 'while [[ $1 == --* ]]; do shift; done; echo $$ >"$SLURM_SUBMIT_DIR/step"; SLURMD_NODENAME=LOCALHOST exec "$@"')
        self.stand_in("scancel", '[ "$1" = --signal=TERM ] && kill -TERM "$(cat "$SLURM_SUBMIT_DIR/step")"')
        self.port = free_port_pair("0.0.0.0")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def stand_in(self, name, line):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write(f"#!/usr/bin/env bash\n{line}\n")
        os.chmod(path, 0o755)

    def submit(self, steps):
        job = os.path.join(self.folder, "small.job")
        with open(job, "w") as file:
            file.writelines(f"{key} = {value}\n" for key, value in (SMALL_JOB | {"steps": steps}).items())
        environment = {
            "PATH": self.bin + os.pathsep + os.environ["PATH"], "MESH_PORT": str(self.port),
            "SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "x", "SLURM_SUBMIT_DIR": self.folder,
        }  # fmt: skip
        return subprocess.Popen(
            ["bash", os.path.join(DEPLOY, "slurm", "tgd.sbatch"), job, "--set", "seed=3"],
            env=ENVIRONMENT | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def finish(self, script):
        try:
            said, _ = script.communicate(timeout=PATIENCE)
        finally:
            script.kill()
        with open(os.path.join(self.folder, "step")) as file:
            node = int(file.read())
        self.assertFalse(os.path.exists(f"/proc/{node}"), "the node has ended with the script\n" + said)
        self.assertEqual(script.returncode, 0, said)
        _, metadata = read_safetensors(os.path.join(self.folder, "tgd-17", "model", "model.safetensors"))
        return int(metadata["step"])

    def test_a_job(self):
        self.assertEqual(self.finish(self.submit(10)), 10)

    def test_the_time_is_over(self):
        script = self.submit(100000)
        record = os.path.join(self.folder, "tgd-17", "localhost", "runs", "slurm-17", "run.json")
        wait_until("the run has begun", lambda: os.path.exists(record))
        script.send_signal(signal.SIGTERM)
        self.assertLess(self.finish(script), 100000)


if __name__ == "__main__":
    unittest.main()
