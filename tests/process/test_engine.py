"""What computes: modules beside tgd that can and that cannot be used, and runs in which one node trains on a device. The device is
a stand-in (modules/stand_in.cpp): it gives the processor's bits, in memory that only it can touch."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from changes import check_end, wait_for_change, wait_recorded
from mesh import Mesh
from node import OF_TESTS, TGD
from patience import PATIENCE

MODULES = pathlib.Path(os.environ["TGD_BUILD"]) / "tests" / "process" / "modules"
JOB = {"steps": 12, "global-batch": 16, "weight-decay": 0.0005, "evaluate-every": 6, "checkpoint-every": "1s"}
DEVICE = "Stand-in (device 0)"


class WithModules(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tgd-engine-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def program(self, module):
        """A tgd with that module beside it: a file of MODULES, bytes, or none."""
        place = self.folder / (module if isinstance(module, str) else "odd" if module else "none")
        (place / "bin").mkdir(parents=True, exist_ok=True)
        (place / "engine").mkdir(exist_ok=True)
        if not (place / "bin" / "tgd").exists():
            shutil.copy2(TGD, place / "bin" / "tgd")
        if isinstance(module, bytes):
            (place / "engine" / "tgd-cuda.so").write_bytes(module)
        elif module:
            shutil.copy2(MODULES / module / "tgd-cuda.so", place / "engine" / "tgd-cuda.so")
        return str(place / "bin" / "tgd")

    def mesh(self, count, modules, settings=None, per_node=None):
        mesh = Mesh(count, {"engine": "auto"} | (settings or {}), per_node)
        for index, module in modules.items():
            mesh[index].program = self.program(module)
        return mesh


class Loading(WithModules):
    CASES = {  # module: words of the one line
        None: ["no module for GPUs is installed", "tgd-cuda.so", "install the package tgd-cuda"],
        "other_build": ["is of the build 0.0.1+of-another-build, and this tgd of 0.", "install both from one build"],
        "half": ["is not a module of tgd: it has no tgd_open_module"],
        "needs_library": ["needs libabsent.so.9, which is not on this machine", "NVIDIA"],
        b"no module at all\n": ["cannot be loaded", "tgd-cuda.so", "reinstall"],
    }

    def started(self, module, *arguments):
        """tgd that has to end by itself."""
        own = {name: value for name, value in os.environ.items() if name not in OF_TESTS}
        line = [self.program(module), "--node", "a", "--peer", "a@127.0.0.1:1", "--state-dir", str(self.folder / "state"), *arguments]
        return subprocess.run(line, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)

    def test_cuda_or_nothing(self):
        for module, words in self.CASES.items():
            with self.subTest(module=module):
                done = self.started(module, "--engine", "cuda")
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)  # 2: never tried again
                for word in ["engine = cuda: ", "or set engine = cpu", *words]:
                    self.assertIn(word, done.stderr)
        done = self.started("stand_in", "--engine", "cuda", "--device", "9")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tgd: engine = cuda: there is no device 9: this machine has 4, counted from 0; set device", done.stderr)

    def test_auto_takes_the_processor_and_says_why(self):
        for module, words in self.CASES.items():
            with self.subTest(module=module), self.mesh(1, {0: module}) as mesh:
                lines = [line for line in mesh[0].log_text().splitlines() if "event=engine " in line]
                self.assertEqual(len(lines), 1)
                self.assertIn("level=info" if module is None else "level=warning", lines[0])
                shown = mesh.status()["nodes"][0]["compute"]
                self.assertEqual((shown["engine"], shown["device"], shown["problem"]), ("cpu", None, ""))
                for word in words:
                    self.assertIn(word, lines[0])
                    self.assertIn(word, shown["why_cpu"])
                text = mesh.ctl_ok("status").out
                self.assertEqual("ENGINE" in text, module is not None, text)
        with self.mesh(1, {0: "half"}, {"engine": "cpu"}) as mesh:
            self.assertNotIn("event=engine ", mesh[0].log_text())
            self.assertEqual(mesh.status()["nodes"][0]["compute"]["why_cpu"], "")

    def test_version(self):
        plain = subprocess.run([self.program(None), "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
        self.assertEqual(plain.count("\n"), 1)
        self.assertNotIn("device", plain)
        said = subprocess.run([self.program("stand_in"), "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
        self.assertEqual(said, plain.rstrip() + f", stand-in 1.0, driver 2.0 on {DEVICE}\n")
        said = subprocess.run([self.program("half"), "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
        self.assertIn(", no device: ", said)


class Mixed(WithModules):
    def digest(self, mesh, job):
        run = mesh.start(job)
        digests = {member["digest"] for member in mesh.run(run)["members"]}
        self.assertEqual(len(digests), 1)
        return run, digests.pop()

    def test_a_device_and_a_processor_train_one_run(self):
        replay = {"compute": "replay", "model": "lenet", "steps": 5, "checkpoint-every": None}
        jobs = [JOB | {"optimizer": "adam", "micro-batch": 2, "exchange": "sharded"}, replay]  # more of them: tests/engine/cuda
        with self.mesh(2, {0: None, 1: None}) as mesh:
            expected = [self.digest(mesh, job)[1] for job in jobs]
        with self.mesh(2, {0: "stand_in", 1: None}, per_node={0: {"engine": "cuda", "math": "tf32", "memory-mib": 400}}) as mesh:
            ran = [self.digest(mesh, job) for job in jobs]
            self.assertEqual([digest for _, digest in ran], expected)
            own, other = mesh[0].record(ran[0][0])["own"], mesh[1].record(ran[0][0])["own"]
            self.assertEqual((own["engine"], own["device"], own["math"]), ("cuda", DEVICE, "tf32"))
            self.assertTrue(own["engine_build"].startswith("stand-in tf32, oneDNN"), own)
            self.assertEqual(own["engine_choices"], ["ip1 forward: the processor's, 0 MiB", "ip1 backward data: the same, 0 MiB"])
            self.assertEqual(other["engine_choices"], [])
            self.assertEqual((other["engine"], other["device"], other["math"]), ("cpu", "", "fp32"))
            mesh.fetch(ran[0][0])
            self.evaluated(mesh, ran[0][0])
            mesh.ctl("report", ran[1][0], "-o", "page.html", "--mistakes").refuses(1, "replayed gradients")
            self.shown(mesh)

    def evaluated(self, mesh, run):
        """Anew, by the device and by the processor: as the run has counted."""
        for asked in (0, 1):
            path = str(self.folder / f"page-{asked}.html")
            mesh.ctl_ok("report", run, "-o", path, "--mistakes", node=asked)
            page = pathlib.Path(path).read_text(encoding="utf-8")
            self.assertIn(f"{mesh[asked].name} evaluated the model of step 12", page)
            self.assertNotIn("The run's own evaluation had", page)

    def shown(self, mesh):
        """Status, the estimate of a start and plan know the device."""
        for asked in (0, 1):
            first, second = mesh.status(node=asked)["nodes"]
            self.assertEqual(first["compute"], {"engine": "cuda", "device": DEVICE, "math": "tf32", "memory_free_bytes": 8 << 30,
                                                "memory_total_bytes": 8 << 30, "problem": "", "why_cpu": ""})  # fmt: skip
            self.assertEqual((second["compute"]["engine"], second["compute"]["memory_free_bytes"]), ("cpu", None))
        self.assertRegex(mesh.ctl_ok("status").out, r"(?m)^node-a +cuda +tf32 +\d.* of \d.* +Stand-in \(device 0\)$")
        self.assertIn("of its GPU's", mesh.ctl_ok("start", mesh.job_file(JOB), "--dry-run").out)
        self.assertIn("bound by", mesh.ctl_ok("plan", mesh.job_file(JOB), "--nodes", "4").out)

    def test_a_device_that_is_too_small(self):
        with self.mesh(1, {0: "stand_in"}, {"engine": "cuda", "device": 1}) as mesh:
            answer = mesh.ctl("start", mesh.job_file(JOB))
            self.assertNotEqual(answer.code, 0)
            self.assertRegex(answer.err, r"the run needs \d+ MiB of memory on Stand-in \(device 1\) and 1 MiB of its 8192 MiB are free \(\d+ MiB of the need are reserved for the exchange and for kernels")

    def test_a_device_that_dies_in_a_run(self):
        why = r"node-a step \d+: the engine failed: \w+: device lost"
        for threads in (1, 2):  # the exchange on the node's own thread, on helpers
            lone = {0: {"engine": "cuda", "device": 3, "threads": threads}}
            with self.subTest(threads=threads), self.mesh(2, {0: "stand_in", 1: None}, per_node=lone) as mesh:
                answer = mesh.ctl_ok("start", mesh.job_file({"steps": 100, "digest-every": 1, "exchange": "sharded"}))
                run = answer.out.strip()
                self.assertRegex(" ".join(answer.err.split()), why)
                self.assertRegex(wait_for_change(mesh[1], run, members=1).why, why)
                check_end([mesh[1]], run)
                self.assertEqual(wait_recorded(mesh[0], run, "COMPLETED")["own"]["save"], "nothing saved")
                for node in (0, 1):
                    shown = mesh.run(run, node=node)
                    self.assertEqual((shown["state"], [one["node"] for one in shown["left"]]), ("COMPLETED", ["node-a"]))
                    self.assertRegex(shown["left"][0]["why"], why)
                self.assertRegex(" ".join(mesh.ctl_ok("status", run).out.split()), why)
                again = mesh.ctl("start", mesh.job_file({}), node=1)
                self.assertNotEqual(again.code, 0)
                self.assertRegex(again.err, "node-a cannot prepare the run: .*device lost")
                self.assertTrue(mesh[0].alive())

    def test_all_devices_die_in_a_run(self):
        """No member can go on, and each says why."""
        with self.mesh(2, {0: "stand_in", 1: "stand_in"}, {"engine": "cuda", "device": 3}) as mesh:
            answer = mesh.ctl("start", mesh.job_file({"steps": 2000, "digest-every": 1, "exchange": "sharded"}))
            self.assertEqual(answer.code, 5, answer)
            for node in (0, 1):
                run = mesh.status(node=node)["runs"][0]
                self.assertEqual(run["state"], "FAILED")
                # A member that is alone for a moment says it of the view that it would go on with.
                self.assertRegex(run["reason"], r"node-[ab] (step \d+: the engine failed|cannot continue with its share of \d+ samples): \w+: device lost")

    def test_a_device_that_does_not_answer(self):
        with self.mesh(1, {0: "stand_in"}, {"engine": "cuda", "device": 2}) as mesh:
            answer = mesh.ctl("status", "--check")
            self.assertEqual(answer.code, 8, answer)
            self.assertIn("the device does not answer: standInMemGetInfo: device lost", " ".join(answer.err.split()))


if __name__ == "__main__":
    unittest.main()
