"""tgctl doctor: each problem of a mesh is named with its next step, and nothing else is. The verdicts themselves: tests/daemon/diagnose_test.cpp."""

import functools
import json
import os
import re
import unittest

from mesh import Mesh
from network import Network, NetworkUnavailable, _do
from patience import PATIENCE, wait_until

NOT_WELL, FORBIDDEN, UNREACHABLE = 9, 7, 3
TRIES = 5  # on a machine that is busy with other things, where doctor finds what is so: no processor in time, slow answers
BUSY = ("did not end in time", "had no time to try", "ask again in a")


def examined(mesh, *options, node=0, code=None, bandwidth=False):
    """tgctl doctor --json: exit code, and what was found. Asked again where it found the machine busy."""
    options = [*options, *([] if bandwidth else ["--no-bandwidth"])]
    for _ in range(TRIES):
        answer = mesh.ctl("doctor", "--json", *options, node=node, patience=PATIENCE + 60)
        if not any(found in answer.out for found in BUSY):
            break
    if code is not None and answer.code != code:
        raise AssertionError(f"exit code {code} expected: {answer}")
    return answer.code, json.loads(answer.out)


def wrong(found):
    return [one for one in found["findings"] if one["verdict"] == "fail"]


def show(mesh, *options, node=0):
    print("\n" + mesh.ctl("doctor", *options, node=node, patience=PATIENCE + 60).out)


class Doctor(unittest.TestCase):
    def finds(self, mesh, check, node, seen, fix, node_asked=0, **options):
        """That finding is there; all findings, to look for others."""
        code, found = examined(mesh, node=node_asked, **options)
        self.assertEqual(code, NOT_WELL, found)
        self.assertFalse(found["passed"])
        for one in wrong(found):
            if one["check"] == check and one["node"] == node and re.search(seen, one["seen"]) and fix in one["fix"]:
                print(f"\n{check} {one['verdict']}: {node}: {one['seen']}\n  fix: {one['fix']}")
                return found
        self.fail(f"no finding of {check} about {node} with {seen!r} and {fix!r}: {json.dumps(wrong(found), indent=1)}")

    def only(self, found, *checks):
        self.assertEqual({one["check"] for one in wrong(found)}, set(checks), wrong(found))

    def cell(self, found, one, other):
        return next(link["reach"] for link in found["links"] if (link["from"], link["to"]) == (one, other))


class OneMachine(Doctor):
    def test_a_healthy_mesh_passes(self):
        with Mesh(3, keys=True) as mesh:
            show(mesh, "--seconds", "1")
            _, found = examined(mesh, "--seconds", "1", code=0, bandwidth=True)
            self.assertTrue(found["passed"])
            self.assertEqual(wrong(found), [])
            self.assertEqual([one["verdict"] for one in found["findings"]], ["pass"] * 12, found["findings"])
            self.assertTrue(all(link["reach"] == "ok" and link["payload_mbps"] > 10 for link in found["links"]), found["links"])
            self.assertEqual(len(found["links"]), 6)
            # It left nothing that keeps a run from starting.
            mesh.start({"steps": 3})

    def test_a_peer_that_is_down(self):
        with Mesh(3) as mesh:
            mesh[2].kill()
            found = self.finds(mesh, "nodes", "node-c", "nothing listens at 127", "start tgd on node-c")
            self.only(found, "nodes")
            self.assertEqual([self.cell(found, *pair) for pair in (("node-a", "node-c"), ("node-c", "node-b"), ("node-a", "node-b"))], ["down", "down", "ok"])
            # The asked node itself: what to do is said, and nothing on stdout.
            answer = mesh.ctl("doctor", node=2).ends(UNREACHABLE, "nothing listens there", "start tgd here", "--address")
            self.assertEqual(answer.out, "")

    def test_a_wrong_key(self):
        with Mesh(3, keys=True, absent={2}) as mesh:
            other, seen = os.path.join(mesh.folder, "other.key"), "another cluster key than node-a, node-b, or none"
            mesh.keygen(other)
            mesh.configure(2, key_file=other)
            mesh[2].start()
            wait_until("both control ports have been refused", lambda: seen in mesh.ctl("doctor", "--json", "--no-bandwidth").out)
            self.only(found := self.finds(mesh, "keys", "node-c", seen, "copy the cluster key file of node-"), "keys")
            self.assertEqual(self.cell(found, "node-a", "node-c"), "refused")
            # Asked there, it is the odd one; and without a key a client is told nothing.
            asked_there = functools.partial(mesh.ctl, "--key", other, "doctor", "--json", "--no-bandwidth", node=2)
            wait_until("node-c's control links have been refused", lambda: (answer := asked_there()).code == NOT_WELL and seen in answer.out)
            mesh.ctl("--key", "", "doctor").refuses(FORBIDDEN, "requires a key")

    def test_rights(self):
        with Mesh(2, keys=True) as mesh:
            mesh.keygen(mesh.key_file, "--operator", "bob", "--read-only")
            bob = os.path.join(mesh.folder, "bob.key")
            wait_until("the nodes know bob", lambda: all("operators=1" in node.log_text() for node in mesh.nodes))
            mesh.ctl("--key", bob, "doctor").ends(FORBIDDEN, "operator bob may only read", "doctor --no-bandwidth")
            self.assertIn("FROM \\ TO", mesh.ctl("--key", bob, "doctor", "--no-bandwidth").out)

    def test_while_a_run_is_on(self):
        with Mesh(2) as mesh:
            run = mesh.detach({"steps": 100000, "data-train": 1024})
            mesh.wait_for_step(run, 3)
            _, found = examined(mesh, code=0, bandwidth=True)
            seen = {one["check"]: one for one in found["findings"]}
            self.assertEqual((seen["bandwidth"]["verdict"], seen["bandwidth"]["seen"]), ("skipped", f"not checked: run {run} is active"))
            self.assertEqual(seen["data"]["verdict"], "skipped")
            step = mesh.run(run)["step"]
            mesh.wait_for_step(run, step + 20)
            mesh.ctl_ok("stop", run)

    def test_a_run_that_begins_meanwhile_comes_first(self):
        with Mesh(2) as mesh:
            doctor = mesh.follow("doctor", "--seconds", "20")
            self.assertIn("about 24 s", doctor.process.stderr.readline())
            wait_until("they are being examined", lambda: "being examined already" in mesh.ctl("doctor", "--no-bandwidth").err)
            mesh.start({"steps": 3})
            answer = doctor.finish()
            self.assertIn("began", answer.out)
            self.assertIn("skipped", answer.out)


class FourMachines(Doctor):
    """Namespaces on a bridge."""

    def setUp(self):
        try:
            self.network = Network(4, cut=True).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.__exit__)
        self.mesh = Mesh(4, {"insecure": "true"}, hosts=self.network.addresses, prefixes=self.network.prefixes)

    def shape(self, index, rate, device=Network.INTERFACE):
        """What this node sends."""
        _do(*self.network.prefixes[index], "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "100kb", "limit", "400kb")

    def test_a_port_that_is_blocked_in_one_direction(self):
        with self.mesh as mesh:
            # node-b lets nothing in that node-a sends to its mesh port, from the next connection on.
            self.network._refuse(1, "INPUT", "-s", self.network.addresses[0], "-p", "tcp", "--dport", str(mesh[1].port))
            wait_until("node-a sees it", lambda: json.loads(mesh.ctl("status", "--json").out)["nodes"][1]["state"] != "up")
            found = self.finds(mesh, "ports", "node-a", f"node-a gets no answer from node-b at {self.network.addresses[1]}, TCP 7700",
                               f"ufw allow from {self.network.addresses[0]} to any port 7700 proto tcp, on node-b")  # fmt: skip
            self.only(found, "ports")
            self.assertEqual((self.cell(found, "node-a", "node-b"), self.cell(found, "node-b", "node-a")), ("mesh", "ok"))
            show(mesh, "--no-bandwidth")
            # The same seen from elsewhere, and with its control port closed too.
            self.network._refuse(1, "INPUT", "-s", self.network.addresses[0], "-p", "tcp", "--dport", str(mesh[1].port + 1))
            found = self.finds(mesh, "ports", "node-a", "TCP 7700,7701", f"ufw allow from {self.network.addresses[0]} to any port 7700,7701 ", node_asked=2)
            self.assertEqual(self.cell(found, "node-a", "node-b"), "both")

    def test_a_slow_link(self):
        with self.mesh as mesh:
            for index in range(3):
                self.shape(index, "1gbit")
            self.shape(3, "10mbit")
            show(mesh, "--seconds", "2")
            found = self.finds(mesh, "bandwidth", "node-d", "every link from node-d is slow: [0-9.]+ Mbit/s, expected", "ethtool eth0 on node-d", bandwidth=True)
            self.only(found, "bandwidth")
            slow = [link["payload_mbps"] for link in found["links"] if link["from"] == "node-d"]
            self.assertTrue(all(5 < rate < 11 for rate in slow), slow)
            others = [link["payload_mbps"] for link in found["links"] if link["from"] != "node-d"]
            self.assertTrue(all(rate > 50 for rate in others), others)

    def test_another_mtu(self):
        with self.mesh as mesh:
            _do("ip", "-n", self.network.spaces[2], "link", "set", Network.INTERFACE, "mtu", "1400")
            found = self.finds(mesh, "mtu", "node-c", r"packets of 1400 bytes \(eth0\), node-a of 1500", "ip link set dev eth0 mtu 1500 on node-c")
            self.only(found, "mtu")


if __name__ == "__main__":
    unittest.main()
