"""What is asked of a node has bounds: threads, descriptors, the memory of its own control group, the time of a start."""

import os
import re
import sys
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))

from mesh import QUICK, Mesh
from patience import Elapsed, wait_until
from zmtp import Stranger

USAGE = 2
STOP_SECONDS = 12  # 5 s for a verdict that does not come, 3 s for a compute thread that does not come back


def start_under(node, *prefix):
    """The node alone under this command; its tgctl is not."""
    kept, node.prefix = node.prefix, list(prefix)
    node.start()
    node.prefix = kept


class Threads(unittest.TestCase):
    def test_of_a_job(self):
        with Mesh(2) as mesh:
            for node in (0, 1):
                elapsed = Elapsed()
                mesh.ctl("start", mesh.job_file({"threads": 1024}), node=node).refuses(USAGE, "node-", "threads = 1024", "processor")
                self.assertLess(elapsed.seconds(), 5)
            mesh.ctl("start", mesh.job_file({"threads": 1024}), "--dry-run").refuses(USAGE, "node-a", "threads = 1024")

    def test_of_a_node(self):
        with Mesh(2, per_node={1: {"threads": 1024}}) as mesh:
            run = mesh.start({"steps": 3})
            processors = len(os.sched_getaffinity(0))
            used = int(re.search(r"event=threads-limited configured=1024 used=(\d+)", mesh[1].log_text())[1])
            self.assertLessEqual(used, processors)
            self.assertEqual(mesh[1].record(run)["own"]["threads"], used)


class Descriptors(unittest.TestCase):
    def test_too_few_are_said_at_once(self):
        with Mesh(2, absent=[1]) as mesh:
            for few in (20, 34):
                with self.subTest(descriptors=few):
                    start_under(mesh[1], "prlimit", f"--nofile={few}:{few}")
                    self.assertEqual(mesh[1].wait(), 1, f"log {mesh[1].log}")
                    said = re.search(r"^tgd: a mesh of 2 nodes needs (\d+) open files and connections, and (\d+) are allowed; .*ulimit -n \1", mesh[1].log_text(), re.M)  # fmt: skip
                    self.assertIsNotNone(said, mesh[1].log_text())
                    os.truncate(mesh[1].log, 0)
                    self.assertEqual(int(said[2]), few)
            # What it asks for is enough, also where it may raise the limit itself.
            needed = said[1]
            for limit in (f"{needed}:{needed}", f"20:{needed}"):
                with self.subTest(limit=limit):
                    start_under(mesh[1], "prlimit", f"--nofile={limit}")
                    mesh.wait_ready()
                    mesh.start(QUICK, node=1)
                    mesh.fetch(mesh.start({"steps": 3}), node=1)
                    self.assertEqual(mesh[1].end(), 0)

    def test_idle_connections_cost_no_run_its_state(self):
        """Clients connect to the ports, shake hands and send nothing: the descriptors that a run is saved with stay free."""
        with Mesh(2, absent=[0, 1]) as mesh:
            for node in mesh.nodes:
                start_under(node, "prlimit", "--nofile=256:256")
            mesh.wait_ready()
            run = mesh.detach({"steps": 100000, "checkpoint-every": "200ms"})
            mesh.wait_for_step(run, 2)
            idle = []
            self.addCleanup(lambda: [one.socket.close() for one in idle])
            taken = lambda: len(os.listdir(f"/proc/{mesh[0].process.pid}/fd"))
            for port in (mesh[0].port, mesh[0].port + 1) * 15:
                for _ in range(10):
                    idle.append(Stranger(mesh[0].host, port, patience=1))
                    idle[-1].greet()
                wait_until(lambda: f"those above the bound are cut: {taken()} of 256 descriptors are taken", lambda: taken() < 240)
            # By their number, and not because they were silent for long.
            self.assertEqual(set(re.findall(r"event=connection-cut port=(\w+) .*more than 68 connections", mesh[0].log_text())), {"mesh", "control"})
            known = mesh[0].log_text().count("event=checkpoint ")
            wait_until("two more checkpoints are written", lambda: mesh[0].log_text().count("event=checkpoint ") > known + 1)
            self.assertNotIn("event=checkpoint-failed", mesh[0].log_text())
            mesh.ctl_ok("stop", run)
            mesh.ctl("wait", run)
            self.assertEqual([row["save"] for row in mesh.run(run)["members"]], ["saved", "saved"])
            mesh.fetch(run)

    def test_a_mesh_uses_few_descriptors(self):
        """A node counts the descriptors that it needs by these numbers, with a margin."""
        counts = {}
        for nodes in (2, 4):
            with Mesh(nodes) as mesh:
                run = mesh.detach({"steps": 100000, "schedule": "constant"})
                mesh.wait_for_step(run, 2)
                counts[nodes] = len(os.listdir(f"/proc/{mesh[0].process.pid}/fd"))
                mesh.ctl_ok("stop", run)
        per_peer = (counts[4] - counts[2]) / 2
        print(f"descriptors of a node in a run: {counts}, {per_peer:g} for each peer")
        self.assertLessEqual(per_peer, 12)
        self.assertLessEqual(counts[2] - 2 * per_peer, 48)


class Group:
    """A control group for memory, version 1 or 2, or the reason why there is none."""

    def __init__(self, limit_bytes):
        with open("/proc/self/cgroup") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
        own = next((path for _, names, path in groups if "memory" in names.split(",")), None)
        self.path = os.path.join("/sys/fs/cgroup" + ("/memory" if own is not None else groups[-1][2]), f"tgd-test-{os.getpid()}")
        limit = "memory.limit_in_bytes" if own is not None else "memory.max"
        try:
            os.mkdir(self.path)
        except OSError as reason:
            raise unittest.SkipTest(f"no control group can be made: {reason}") from None
        try:
            with open(os.path.join(self.path, limit), "w") as file:
                file.write(str(limit_bytes))
        except OSError as reason:
            self.remove()
            raise unittest.SkipTest(f"no control group's memory can be limited: {reason}") from None

    def prefix(self):
        return ["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', self.path]

    def remove(self):
        wait_until("the group is empty", self._removed)

    def _removed(self):
        try:
            os.rmdir(self.path)
        except OSError:
            return False
        return True


class Memory(unittest.TestCase):
    def test_of_the_own_group(self):
        """AlexNet does not fit: said before anything is taken, instead of being killed by the kernel."""
        group = Group(600 << 20)
        self.addCleanup(group.remove)
        with Mesh(2, absent=[1]) as mesh:
            start_under(mesh[1], *group.prefix())
            mesh.wait_ready()
            job = {"model": "alexnet", "compute": "replay", "steps": 3, "link-mbps": 1000, "data-train": None, "data-test": None, "threads": 1}
            answer = mesh.ctl("start", mesh.job_file(job))
            self.assertNotEqual(answer.code, 0)
            self.assertRegex(answer.err, r"node-b: the run needs \d+ MiB of memory and \d+ MiB are free there")
            self.assertTrue(mesh[1].alive())

            def accepted():
                answer = mesh.ctl("start", mesh.job_file({"steps": 3}))
                if answer.code != 0:  # node-a may still draw AlexNet's parameters
                    self.assertIn("node-a is still busy with run alexnet", answer.err)
                return answer.code == 0

            wait_until("a run that fits is trained", accepted)


class Stop(unittest.TestCase):
    """A run that has not begun is stopped at any node, whatever it waits for."""

    def stop(self, mesh, run, node):
        elapsed = Elapsed()
        answer = mesh.ctl_ok("stop", run, node=node, patience=60)
        self.assertEqual(answer.out.strip(), "STOPPED")
        took = elapsed.seconds()
        self.assertLess(took, STOP_SECONDS, f"stopped at {mesh[node].name}")
        return took

    def phases(self, mesh):
        """What each member says of itself."""
        return [member["phase"] and member["phase"]["name"] for run in mesh.status()["runs"] for member in run["members"]]

    def test_pending(self):
        with Mesh(2, absent=[1]) as mesh:
            starting = mesh.follow("start", mesh.job_file({}), "--id", "early")
            wait_until("the run waits for node-b", lambda: [run["state"] for run in mesh.status()["runs"]] == ["PENDING"])
            took = self.stop(mesh, "early", 0)
            self.assertNotEqual(starting.finish().code, 0)
            print(f"PENDING: stopped after {took:.2f} s")

    def test_starting(self):
        """node-b's preparation hangs, as the proposer's and as a member's."""
        for proposer, stopper in ((0, 1), (1, 0)):
            with self.subTest(proposer=proposer, stopper=stopper), Mesh(2, per_node={1: {"fault": "hang@prepare:0"}}) as mesh:
                starting = mesh.follow("start", mesh.job_file({}), "--id", "stuck", node=proposer)
                wait_until("both prepare the run", lambda: self.phases(mesh) == ["prepare", "prepare"])
                took = self.stop(mesh, "stuck", stopper)
                self.assertNotEqual(starting.finish().code, 0)
                print(f"STARTING at node {proposer}, stopped at node {stopper}: {took:.2f} s")
                # What hangs there still takes its memory: said, and nothing is started beside it.
                busy = "still busy with run stuck, which is over"
                for node in (0, 1):
                    wait_until("status says with what node-b is busy", lambda: busy in mesh.status(node=node)["nodes"][1]["problem"])
                    mesh.ctl("start", mesh.job_file({}), node=node).ends(1, "node-b is " + busy, "restart tgd there")


if __name__ == "__main__":
    unittest.main()
