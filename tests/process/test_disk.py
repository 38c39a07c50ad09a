"""A disk that stands still: its node says so and leaves the run to the others, never seems to run, and comes back with its disk."""

import os
import pathlib
import signal
import unittest

from mesh import Mesh
from patience import wait_until

LIBRARY = pathlib.Path(os.environ["TGD_BUILD"]) / "tests" / "process" / "modules" / "standing-disk.so"
JOB = {"steps": 1_000_000, "evaluate-every": 10, "schedule": "constant", "join-limit": "60s"}
STANDS = "the disk of node-b stands still: a write in "
VICTIM = 1


class StandsStill(unittest.TestCase):
    def mesh(self):
        mesh = Mesh(3, {"peer-timeout": "3s"})
        self.flag = os.path.join(mesh.folder, "stands")
        mesh[VICTIM].environment |= {"LD_PRELOAD": str(LIBRARY), "STANDING_DISK": self.flag}
        return mesh

    def begin(self, mesh):
        run = mesh.detach(JOB)
        mesh.wait_for_step(run, 20)
        with open(self.flag, "w"):
            return run

    def problem(self, mesh, node):
        """What status at that node says of the one whose disk stands still."""
        return next(row["problem"] for row in mesh.status(node=node)["nodes"] if row["name"] == "node-b")

    def all_say_so(self, mesh):
        for node in range(3):
            wait_until(lambda at=node: f"node {at} says that the disk stands still: {mesh.status(node=at)}", lambda at=node: self.problem(mesh, at).startswith(STANDS))

    def goes_on(self, mesh, run, members):
        wait_until(lambda: f"{members} have the run: {mesh.run(run)}", lambda: [row["node"] for row in mesh.run(run)["members"]] == members)
        mesh.wait_for_step(run, mesh.run(run)["step"] + 20)

    def test_the_others_go_on_and_it_comes_back(self):
        with self.mesh() as mesh:
            run = self.begin(mesh)
            self.all_say_so(mesh)
            self.goes_on(mesh, run, ["node-a", "node-c"])
            left = mesh.run(run)["left"]
            self.assertEqual([one["node"] for one in left], ["node-b"])
            self.assertIn(STANDS, left[0]["why"])
            log = wait_until("node-b is PAUSED", lambda: "event=paused " in (text := mesh[VICTIM].log_text()) and text)
            self.assertIn(STANDS, log)
            self.assertNotIn("event=pause-ended", log)
            mesh.ctl("fetch", run, "-o", os.path.join(mesh.folder, "none"), node=VICTIM, patience=30).refuses(1)
            self.all_say_so(mesh)

            os.remove(self.flag)
            self.goes_on(mesh, run, ["node-a", "node-b", "node-c"])
            wait_until("all is well", lambda: self.problem(mesh, 0) == "")
            mesh.ctl("stop", run, node=VICTIM).ends(0)

    def test_it_can_be_stopped_there(self):
        with self.mesh() as mesh:
            run = self.begin(mesh)
            mesh[2].signal(signal.SIGKILL)  # its own vote is needed now
            mesh[2].wait()

            def states():
                return {row["node"]: row["state"] for row in mesh.run(run, node=VICTIM)["members"]}

            wait_until(lambda: f"both are PAUSED: {states()}", lambda: states()["node-a"] == states()["node-b"] == "PAUSED")
            mesh.ctl("stop", run, node=VICTIM).ends(10, "stopped here while PAUSED")
            self.assertEqual(set(states().values()), {"INTERRUPTED"})
            os.remove(self.flag)
            wait_until("its record is written", lambda: mesh[VICTIM].record(run)["state"] == "INTERRUPTED")
            wait_until(lambda: f"its state, too: {mesh.run(run)}", lambda: [row["save"] for row in mesh.run(run, node=VICTIM)["members"] if row["node"] == "node-b"] == ["saved"])
            mesh[2].start()
            mesh.wait_ready()
            mesh.ctl("resume", run, "--detach", node=VICTIM).ends(0)


if __name__ == "__main__":
    unittest.main()
