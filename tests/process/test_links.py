"""Links that are cut in the middle of a run, and heal: which member is named and evicted, when, and that the next start works at once.

TGD_CUTS in the environment: how often each cut is made (1)."""

import os
import subprocess
import time
import unittest

from changes import check_end, wait_for_change, wait_recorded
from mesh import QUICK, Mesh
from network import Network, NetworkUnavailable
from node import TGD
from patience import Elapsed, wait_until

PEER_TIMEOUT = 3
SLACK = 2  # seconds beyond the peer-timeout in which all have to know
LINKS = 2.5  # two that do not hear each other are asked again for so long before one is left out (ViewChange::kLinksMs)
HEALED = 5  # seconds after which a start works again
CUTS = int(os.environ.get("TGD_CUTS", "1"))
LONG_JOB = {"steps": 100000, "data-train": 1024}


class Links(unittest.TestCase):
    """Three nodes in namespaces; node-b or node-c is to blame, node-a never."""

    def setUp(self):
        try:
            self.network = Network(3, cut=True).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.__exit__)
        self.mesh = Mesh(3, {"insecure": "true", "peer-timeout": f"{PEER_TIMEOUT}s"}, hosts=self.network.addresses, prefixes=self.network.prefixes)

    def heals(self, what, cut, *guilty, alone=False, patience=PEER_TIMEOUT + SLACK):
        """Each time: a run, the cut; node-a and node-b go on, in time and with the right name, and node-c learns at healing that it
        is out. alone: it hears no node, and is PAUSED meanwhile. The run ends well, and so does the next one."""
        with self.mesh as mesh:
            for number in range(CUTS):
                run = mesh.detach(LONG_JOB)
                mesh.wait_for_step(run, 3)
                cut_at, since_cut = time.time(), Elapsed()
                cut()
                told = {}
                for node in mesh.nodes[:2]:
                    change = wait_for_change(node, run, members=2, patience=patience + 10)
                    told[node.name] = change.at - cut_at
                    self.assertTrue(any(one in change.why for one in guilty), f"{node.name} blames another node: {change.why}")
                    self.assertLess(change.at - cut_at, patience + since_cut.excused(), f"{node.name}: {change.why}")
                print(f"{what} {number}: " + "; ".join(f"{name} after {after:.1f} s" for name, after in told.items()) + f": {change.why}")
                mesh.wait_for_step(run, change.start + 10)
                if alone:
                    wait_until("node-c is PAUSED", lambda: mesh.run(run, node=2)["state"] == "PAUSED")
                self.network.heal()
                since_healing = Elapsed()
                self.assertIn("node-c was evicted", wait_recorded(mesh[2], run, "INTERRUPTED")["reason"])
                self.assertLess(since_healing.seconds(), HEALED)
                mesh.ctl_ok("stop", run)
                check_end(mesh.nodes[:2], run)
                wait_recorded(mesh[2], run, "STOPPED")
                started = wait_until("a start is taken", lambda: mesh.ctl("start", mesh.job_file({"steps": 3})).code == 0, patience=HEALED + 10)
                self.assertTrue(started)
                print(f"{what} {number}: a run of three steps had ended {since_healing.seconds():.1f} s after healing")

    def test_full(self):
        self.heals("full", lambda: self.network.isolate(2), "node-c", alone=True)

    def test_one_way(self):
        self.heals("one way", lambda: self.network.cut(2), "node-c")

    def test_pair(self):
        self.heals("pair", lambda: self.network.part(1, 2), "node-b", "node-c", patience=PEER_TIMEOUT + SLACK + LINKS)

    def test_port(self):
        self.heals("port", lambda: self.network.close_port(1, 2, self.mesh[2].port), "node-b", "node-c", patience=PEER_TIMEOUT + SLACK + LINKS)

    def test_reset(self):
        self.heals("reset", lambda: self.network.close_port(1, 2, self.mesh[2].port, reset=True), "node-b", "node-c")

    def test_a_second_process_of_a_name(self):
        """node-c's machine runs a copy of node-b's configuration, too: it is refused, told so, and costs nothing."""
        with self.mesh as mesh:
            second = os.path.join(mesh.folder, "second.conf")
            with open(mesh[1].config) as file:
                text = file.read().replace(mesh[1].state_dir, mesh[1].state_dir + "-2").replace(f"listen = {mesh[1].host}", f"listen = {mesh[2].host}:7800")
            with open(second, "w") as file:
                file.write(text)
            for number in range(CUTS):
                run = mesh.detach(LONG_JOB)
                log = second + ".log"
                with open(log, "w") as out:
                    twin = subprocess.Popen([*self.network.prefixes[2], TGD, "--config", second], stdout=out, stderr=out)
                try:
                    address = self.network.addresses[2]
                    wait_until("node-a names both addresses", lambda: f"node-b connects from {address}" in mesh[0].log_text(), patience=HEALED)
                    wait_until("the second one knows why", lambda: "are two nodes called node-b?" in open(log).read(), patience=HEALED)
                    step = mesh.run(run)["step"]
                    mesh.wait_for_step(run, step + 20)
                finally:
                    twin.kill()
                    twin.wait()
                mesh.ctl_ok("stop", run)
                mesh.wait_ended(run)
                mesh.start(QUICK, patience=HEALED + 10)


if __name__ == "__main__":
    unittest.main()
