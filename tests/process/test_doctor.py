"""tgctl doctor: what is wrong with a mesh is named, with its fix, and nothing else is."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from mesh import Mesh
from network import Network, NetworkUnavailable, _do
from node import TGD
from patience import PATIENCE, wait_until

NOT_WELL, FORBIDDEN, UNREACHABLE = 9, 7, 3
TRIES = 5  # on a machine that is busy with other things, where doctor finds what is so: no processor in time, slow answers
BUSY = ("did not end in time", "there was no time to try", "ask again in a", "a local Ethernet takes")
FAKETIME = ("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1")


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
    return [one for one in found["findings"] if one["verdict"] in ("fail", "warn")]


def show(mesh, *options, node=0):
    print("\n" + mesh.ctl("doctor", *options, node=node, patience=PATIENCE + 60).out)


def version_of(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[1].rstrip(",")


def another_build(folder, own):
    """A copy of tgd whose build id ends differs in a digit: the compiler keeps the id whole or in pieces."""
    copy = os.path.join(folder, "another-tgd")
    with open(TGD, "rb") as file:
        program = file.read()
    for piece in (own.encode(), own[:16].encode(), own[-8:].encode(), own[-4:].encode()):
        with open(copy, "wb") as file:
            file.write(program.replace(piece, piece[:-1] + (b"0" if piece[-1:] != b"0" else b"1")))
        os.chmod(copy, 0o755)
        if version_of(copy) != own:
            return copy
    raise AssertionError(f"{TGD} does not hold its build id {own} in a way that can be changed")


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
            self.assertEqual([one["verdict"] for one in found["findings"]], ["pass"] * 15, found["findings"])
            self.assertTrue(all(link["reach"] == "ok" and link["payload_mbps"] > 10 and link["round_trip_seconds"] < 0.1 for link in found["links"]), found["links"])
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

    def test_a_wrong_name(self):
        with Mesh(3, absent={2}) as mesh:
            host, mesh[2].host = mesh[2].host, "node-c.invalid"
            listen = {"listen": host}
            for index in range(3):
                mesh.configure(index, **listen)
            for node in mesh.nodes[:2]:
                node.end()
                node.start()
            mesh.wait_ready(mesh.nodes[:2])
            found = self.finds(mesh, "names", "node-a", r"node-c\.invalid, in the peer line of node-c, does not resolve on node-a, node-b: \w+", "peer line of node-c")
            self.only(found, "names", "nodes")

    def test_another_build(self):
        with Mesh(3, absent={2}) as mesh:
            own = version_of(TGD)
            copy = another_build(mesh.folder, own)
            other = version_of(copy)
            mesh[2].program = copy
            mesh[2].start()
            wait_until("node-a asks node-c", lambda: "nodes" not in {one["check"] for one in examined(mesh)[1]["findings"] if one["verdict"] != "pass"})
            found = self.finds(mesh, "versions", "node-c", f"node-c runs {re.escape(other)} .*node-a, node-b run {re.escape(own)}", "install one build")
            self.only(found, "versions")
            self.assertEqual(self.cell(found, "node-a", "node-c"), "refused")

    def test_another_dataset(self):
        with Mesh(3) as mesh:
            for index, node in enumerate(mesh.nodes):
                folder = os.path.join(mesh.folder, f"data-{index}")
                os.makedirs(folder)
                for name, images in (("train", 8), ("t10k", 4)):
                    pixel = 1 if index != 1 or name != "train" else 2
                    with open(os.path.join(folder, f"{name}-images-idx3-ubyte"), "wb") as file:
                        file.write(b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (images, 28, 28)) + bytes([pixel]) * (images * 784))
                    with open(os.path.join(folder, f"{name}-labels-idx1-ubyte"), "wb") as file:
                        file.write(b"\0\0\x08\x01" + images.to_bytes(4, "big") + bytes(range(images)))
                mesh.configure(index, data_dir=folder)
            mesh.restart()
            found = self.finds(mesh, "data", "node-b", "another mnist .*data-1.* than node-a", "copy the files of node-a")
            self.only(found, "data")
            os.remove(os.path.join(mesh.folder, "data-1", "t10k-labels-idx1-ubyte"))
            self.finds(mesh, "data", "node-b", "t10k-labels", "")

    def test_a_clock_that_is_off(self):
        library = next((path for path in FAKETIME if os.path.exists(path)), None)
        if library is None:
            self.skipTest("libfaketime is not installed (package faketime)")
        if "libasan" in subprocess.run(["ldd", TGD], capture_output=True, text=True, check=True).stdout:
            self.skipTest("AddressSanitizer wants to be loaded first, and so does libfaketime")
        with Mesh(3, absent={2}) as mesh:
            # Only the calendar: timers and waits go on as they are.
            mesh[2].environment = {"LD_PRELOAD": library, "FAKETIME": "+65", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
            mesh[2].start()
            mesh.wait_ready()
            found = self.finds(mesh, "clock", "node-c", r"6\d\.\d s ahead of the others", "timedatectl set-ntp true on node-c")
            self.only(found, "clock")
            self.finds(mesh, "clock", "node-c", "ahead", "set-ntp", node_asked=2)

    def test_a_wrong_key(self):
        with Mesh(3, keys=True, absent={2}) as mesh:
            other = os.path.join(mesh.folder, "other.key")
            mesh.keygen(other)
            mesh.configure(2, key_file=other)
            mesh[2].start()
            wait_until("node-a sees it", lambda: "refuse" in mesh.ctl("status").out or "another cluster key" in " ".join(mesh.ctl("status").out.split()))
            found = self.finds(mesh, "keys", "node-c", "node-c .*key", "same cluster key file")
            self.only(found, "keys")
            self.assertEqual(self.cell(found, "node-a", "node-c"), "refused")
            # Asked there, it is the odd one; and without a key nobody is told anything.
            answer = mesh.ctl("--key", other, "doctor", "--json", "--no-bandwidth", node=2)
            self.assertEqual(answer.code, NOT_WELL, answer)
            self.assertIn("another cluster key than all the others", answer.out)
            mesh.ctl("--key", "", "doctor").refuses(FORBIDDEN, "requires a key")

    def test_rights(self):
        with Mesh(2, keys=True) as mesh:
            mesh.keygen(mesh.key_file, "--operator", "bob", "--read-only")
            bob = os.path.join(mesh.folder, "bob.key")
            wait_until("the nodes know bob", lambda: all("operators=1" in node.log_text() for node in mesh.nodes))
            mesh.ctl("--key", bob, "doctor").ends(FORBIDDEN, "operator bob may only read", "doctor --no-bandwidth")
            self.assertIn("FROM \\ TO", mesh.ctl("--key", bob, "doctor", "--no-bandwidth").out)

    def test_a_full_disk(self):
        folder = tempfile.mkdtemp(prefix="tgd-disk-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], capture_output=True).returncode != 0:
            self.skipTest("may not mount a small file system")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)
        with Mesh(3, per_node={1: {"state-dir": os.path.join(folder, "state")}}) as mesh:
            with open(os.path.join(folder, "filler"), "wb", buffering=0) as file:
                try:
                    while file.write(b"x" * 65536):
                        pass
                except OSError:
                    pass
            found = self.finds(mesh, "disk", "node-b", r"^\d MiB free where its state-dir is", "tgctl delete")
            self.only(found, "disk")
            os.remove(os.path.join(folder, "filler"))

    def test_too_few_descriptors(self):
        if shutil.which("prlimit") is None:
            self.skipTest("prlimit is not installed")
        with Mesh(3) as mesh:
            subprocess.run(["prlimit", f"--pid={mesh[1].process.pid}", "--nofile=120:120"], check=True)
            found = self.finds(mesh, "descriptors", "node-b", "120 open files and connections are allowed, and this mesh needs 202", "LimitNOFILE=202")
            self.only(found, "descriptors")
            # One that is started so does not begin: its log says why, and doctor where to look.
            mesh[2].end()
            mesh[2].prefix = ["sh", "-c", 'ulimit -n 100; exec "$@"', "sh"]
            mesh[2].start()
            self.assertNotEqual(mesh[2].wait(), 0)
            self.assertIn("ulimit -n", mesh[2].log_text())
            self.finds(mesh, "nodes", "node-c", "nothing listens", "its log says why")

    def test_while_a_run_is_on(self):
        with Mesh(2) as mesh:
            run = mesh.detach({"steps": 100000, "data-train": 1024})
            mesh.wait_for_step(run, 3)
            _, found = examined(mesh, code=0, bandwidth=True)
            seen = {one["check"]: one for one in found["findings"]}
            self.assertEqual((seen["bandwidth"]["verdict"], seen["bandwidth"]["seen"]), ("skipped", f"not measured by node-a, node-b: run {run} is on"))
            self.assertEqual(seen["engine"]["verdict"], "skipped")
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

    def test_a_second_asker_is_told(self):
        with Mesh(2) as mesh:
            both = [mesh.follow("doctor", "--seconds", "2") for _ in range(2)]
            answers = sorted(one.finish() for one in both)
            self.assertEqual([one.code for one in answers], [0, 1], answers)
            self.assertIn("is being examined already", answers[1].err)


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
            found = self.finds(mesh, "ports", "node-a", f"node-a does not get to the mesh port 7700 of node-b at {self.network.addresses[1]}: no answer; the way back works",
                               f"on node-b let TCP 7700 in from {self.network.addresses[0]}")  # fmt: skip
            self.only(found, "ports")
            self.assertEqual((self.cell(found, "node-a", "node-b"), self.cell(found, "node-b", "node-a")), ("mesh", "ok"))
            show(mesh, "--no-bandwidth")
            # The same seen from elsewhere, and with its control port closed too.
            self.network._refuse(1, "INPUT", "-s", self.network.addresses[0], "-p", "tcp", "--dport", str(mesh[1].port + 1))
            found = self.finds(mesh, "ports", "node-a", "mesh port 7700 and control port 7701 of node-b", f"let TCP 7700,7701 in from {self.network.addresses[0]}", node_asked=2)
            self.assertEqual(self.cell(found, "node-a", "node-b"), "both")

    def test_a_slow_link(self):
        with self.mesh as mesh:
            for index in range(3):
                self.shape(index, "1gbit")
            self.shape(3, "10mbit")
            show(mesh, "--seconds", "2")
            found = self.finds(mesh, "bandwidth", "node-d", "what it sends to every node comes at [0-9.]+( to [0-9.]+)? Mbit/s, the median link", "ethtool eth0 on node-d", bandwidth=True)
            self.only(found, "bandwidth")
            slow = [link["payload_mbps"] for link in found["links"] if link["from"] == "node-d"]
            self.assertTrue(all(5 < rate < 11 for rate in slow), slow)
            others = [link["payload_mbps"] for link in found["links"] if link["from"] != "node-d"]
            self.assertTrue(all(rate > 50 for rate in others), others)

    def test_one_slow_direction_of_one_pair(self):
        with self.mesh as mesh:
            # Only what node-a sends to node-b: it has a way of its own.
            one, other = self.network.spaces[:2]
            _do("ip", "-n", one, "link", "add", "eth1", "type", "veth", "peer", "name", "eth1", "netns", other)
            _do("ip", "-n", other, "link", "set", "eth1", "up")
            _do("ip", "-n", one, "link", "set", "eth1", "up")
            _do("ip", "-n", one, "route", "add", self.network.addresses[1], "dev", "eth1", "src", self.network.addresses[0])
            self.shape(0, "10mbit", "eth1")
            found = self.finds(mesh, "bandwidth", "node-a", "from node-a to node-b come [0-9.]+ Mbit/s, the median link", "cable", bandwidth=True)
            self.only(found, "bandwidth")

    def test_a_machine_that_is_off(self):
        with self.mesh as mesh:
            self.network.isolate(3)
            wait_until("it is seen", lambda: json.loads(mesh.ctl("status", "--json").out)["nodes"][3]["state"] == "unreachable")
            found = self.finds(mesh, "nodes", "node-d", "its machine does not answer at " + self.network.addresses[3], "is node-d on")
            self.only(found, "nodes")
            self.network.heal()

    def test_a_node_that_is_cut_off(self):
        """Asked there: what needs another node is no pass, and no link is measured."""
        with self.mesh as mesh:
            self.network.isolate(0)
            wait_until("it is seen", lambda: {node["state"] for node in json.loads(mesh.ctl("status", "--json").out)["nodes"][1:]} == {"unreachable"})
            code, found = examined(mesh, bandwidth=True)
            self.assertEqual(code, NOT_WELL, found)
            verdicts = {one["check"]: (one["verdict"], one["seen"]) for one in found["findings"] if one["check"] != "nodes"}
            for check in ("ports", "keys", "configuration", "versions", "clock", "round-trip", "mtu", "bandwidth"):
                self.assertEqual(verdicts[check][0], "skipped", verdicts)
            for verdict, seen in verdicts.values():
                self.assertTrue(verdict == "skipped" or seen.endswith("; not examined: node-b, node-c, node-d"), verdicts)
            self.network.heal()

    def test_another_mtu(self):
        with self.mesh as mesh:
            _do("ip", "-n", self.network.spaces[2], "link", "set", Network.INTERFACE, "mtu", "1400")
            found = self.finds(mesh, "mtu", "node-c", r"packets of 1400 bytes \(eth0\), most others of 1500", "ip link set dev eth0 mtu 1500 on node-c")
            self.only(found, "mtu")


if __name__ == "__main__":
    unittest.main()
