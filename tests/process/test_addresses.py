"""Names with several addresses, nodes at other addresses than their peers expect, and the log that says so: machines in namespaces."""

import os
import subprocess
import unittest

from asking import TGCTL, Answer
from mesh import QUICK, Mesh
from network import Network, NetworkUnavailable, _do
from node import TGD
from patience import communicate, wait_until

FORBIDDEN = 7


class Addresses(unittest.TestCase):
    def setUp(self):
        try:
            self.network = Network(2, cut=True).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.__exit__)
        self.subnet = self.network.addresses[0].rsplit(".", 1)[0]

    def mesh(self, count=2, hosts=None, **words):
        hosts = hosts or self.network.addresses[:count]
        settings = {} if words.get("keys") else {"insecure": "true"}
        return Mesh(count, settings, hosts=hosts, prefixes=self.network.prefixes[:count], **words)

    def tgctl(self, *words, index=0):
        """On that machine, without an address in the environment."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TGCTL_")}
        command = [*self.network.prefixes[index], TGCTL, *words]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            out, err = communicate(process, 60)
        return Answer(process.returncode, out, err)

    def problem(self, mesh, peer, node=0):
        return next(row for row in mesh.status(node=node)["nodes"] if row["name"] == peer)["problem"] or ""

    def test_all_addresses_of_a_name_are_tried(self):
        gone = self.subnet + ".3"  # no machine has it; node-b finds it before node-a's
        own = zip(("box-a", "box-b"), self.network.addresses)
        self.network.write_hosts(*(f"{address} {name}" for name, real in own for address in (gone, "fd00::99", real)))
        listen = {i: {"listen": address} for i, address in enumerate(self.network.addresses)}
        with self.mesh(hosts=["box-a", "box-b"], per_node=listen) as mesh:
            mesh.start(QUICK)
            mesh.ctl_ok("doctor", "--no-bandwidth")
            self.tgctl("--address", "box-a:7701", "status", index=1).ends(0)

    def test_a_name_with_an_ipv6_address_only(self):
        _do("ip", "-n", self.network.spaces[0], "address", "add", "fd77::1/64", "dev", Network.INTERFACE, "nodad")
        self.network.write_hosts("fd77::1 six")
        with self.mesh(1, hosts=["fd77::1"]):
            self.tgctl("--address", "six:7701", "status").ends(0)

    def test_without_an_address_the_node_of_this_machine_is_asked(self):
        with self.mesh(1) as mesh:
            self.assertIn("node-a", self.tgctl("status").out)
            second = os.path.join(mesh.folder, "second.conf")
            with open(second, "w") as file:
                file.write(f"node = z\npeer = z@{mesh[0].host}:7800\nlisten = {mesh[0].host}\ninsecure = true\nstate-dir = {mesh.folder}/z\n")
            other = subprocess.Popen([*self.network.prefixes[0], TGD, "--config", second], stderr=subprocess.DEVNULL)
            try:
                sockets = (f"{mesh[0].state_dir}/control.sock", f"{mesh.folder}/z/control.sock")
                wait_until("both are named", lambda: all(one in self.tgctl("status").err for one in sockets))
                self.tgctl("status").refuses(3, "nothing listens at 127.0.0.1:7701", "several tgd run", "--address")
            finally:
                other.terminate()
                other.wait()

    def test_a_machine_that_no_line_names_is_told_so_and_is_in_the_log(self):
        with self.mesh(1) as mesh:
            self.tgctl("--address", mesh[0].address, "status", index=1).ends(FORBIDDEN, "does not let this machine in", "control-allow")
            self.assertIn(f"event=connection-refused port=control from={self.network.addresses[1]}", mesh[0].log_text())

    def test_an_address_that_changed_is_told_by_who_hears_it(self):
        with self.mesh(keys=True) as mesh:
            mesh[1].end()
            old, new = mesh[1].host, self.subnet + ".9"
            for verb, address in (("del", old), ("add", new)):
                _do("ip", "-n", self.network.spaces[1], "address", verb, f"{address}/24", "dev", Network.INTERFACE)
            with open(mesh[1].config) as file:
                text = file.read().replace(old, new)
            with open(mesh[1].config, "w") as file:
                file.write(text)
            mesh[1].start()
            words = f"it connects from {new}, and nothing answers at {old}:7700, its peer line on node-a"
            wait_until(lambda: f"node-a says where node-b is: {self.problem(mesh, 'node-b')}", lambda: words in self.problem(mesh, "node-b"))
            self.assertIn(words, " ".join(mesh.ctl("doctor", "--no-bandwidth").out.split()))

    def test_a_path_that_drops_large_packets_is_named(self):
        with self.mesh() as mesh:
            self.network._refuse(1, "INPUT", "-i", Network.INTERFACE, "-m", "length", "--length", "1301:65535")
            said = mesh.ctl("doctor", "--no-bandwidth").out
            self.assertIn("only small packets get through", said)
            self.assertNotIn("restart tgd", said)


if __name__ == "__main__":
    unittest.main()
