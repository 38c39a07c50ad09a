"""The README's "A mesh of your own", word by word: its install command, its configuration, its commands, on two machines that
are network namespaces with the page's addresses. Only the folder /usr/local and the number of steps are others."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest

from network import Network, NetworkUnavailable
from node import OF_TESTS, _die_with_us
from patience import PATIENCE, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["TGD_BUILD"]
NAMES, ADDRESSES = ("node-a", "node-b"), ("10.0.0.1", "10.0.0.2")
SHORT = ("--set", "steps=20", "--set", "evaluate-every=0")


def page():
    """The section's fenced blocks, without their indentation."""
    section = re.search(r"^## A mesh of your own\n(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S)[1]
    blocks = re.findall(r"^ *```\n(.*?)^ *```$", section, re.M | re.S)
    return section, [re.sub(r"^ {3}", "", block, flags=re.M) for block in blocks]


class MeshOfYourOwn(unittest.TestCase):
    def setUp(self):
        try:
            self.network = Network(2, addresses=ADDRESSES).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.__exit__)
        self.folder = tempfile.mkdtemp(prefix="tgd-page-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.local = os.path.join(self.folder, "usr-local")
        self.nodes, self.exported = [], {}

    def shell(self, machine, command):
        """A command line of the page on that machine: stdout and stderr together, as a reader sees them."""
        words = shlex.split(command.replace("/usr/local", self.local), comments=True)
        if words[:2] == ["tgctl", "start"]:
            words += SHORT
        done = subprocess.run(
            [*self.network.prefixes[machine], *words], cwd=self.home(machine), env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)  # fmt: skip
        self.assertEqual(done.returncode, 0, f"$ {command}\n{done.stdout}")
        return done.stdout

    def environment(self):
        own = {name: value for name, value in os.environ.items() if name not in OF_TESTS}
        return own | {"PATH": os.path.join(self.local, "bin") + ":" + os.environ["PATH"]} | self.exported

    def home(self, machine):
        home = os.path.join(self.folder, NAMES[machine])
        os.makedirs(home, exist_ok=True)
        return home

    def install(self, block):
        """Building is what has made this test; the page's folder build/release is the one that was built."""
        lines = [line.split("#")[0].strip() for line in block.splitlines()]
        self.assertEqual(lines[:2], ["deploy/install", "deploy/build release tgd tgctl"])
        words = shlex.split(lines[2])
        self.assertEqual(words, ["sudo", "cmake", "--install", "build/release"])
        subprocess.run([*words[1:3], BUILD, "--prefix", self.local], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        keygen = shlex.split(lines[3])
        self.assertEqual(keygen, ["tgctl", "keygen", "cluster.key"])
        subprocess.run(keygen, cwd=self.home(0), env=self.environment(), check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        shutil.copy2(os.path.join(self.home(0), "cluster.key"), self.home(1))  # as scp -p
        for path in ("bin/tgd", "bin/tgctl", "share/tgd/tgd.conf", "share/tgd/jobs/reference.job"):
            self.assertTrue(os.path.exists(os.path.join(self.local, path)), path)

    def configure(self, block):
        own = re.match(r"node = node-a +# on the second machine: (node-b)\n", block)
        self.assertTrue(own, block)
        for machine, name in enumerate(NAMES):
            with open(os.path.join(self.home(machine), "tgd.conf"), "w") as file:
                file.write(block.replace("node = node-a ", f"node = {name} ", 1))

    def start_nodes(self, section):
        command = re.search(r"`(tgd --config [^`]*)`", section)[1]
        for machine in range(2):
            log = open(os.path.join(self.home(machine), "log"), "w")
            self.addCleanup(log.close)
            node = subprocess.Popen(
                [*self.network.prefixes[machine], *shlex.split(command)], cwd=self.home(machine), env=self.environment(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_us)  # fmt: skip
            self.nodes.append(node)
            self.addCleanup(node.wait)
            self.addCleanup(node.kill)

    def take_exports(self, session):
        """The session without its export lines, which hold for all that follows."""
        self.exported |= dict(re.findall(r"^\$ export (\w+)=(.*)$", session, re.M))
        return re.sub(r"^\$ export .*\n", "", session, flags=re.M)

    def both_up(self):
        done = subprocess.run([*self.network.prefixes[0], "tgctl", "status", "--check"], cwd=self.home(0), env=self.environment(), capture_output=True, text=True)
        return done.returncode == 0

    def test_step_by_step(self):
        section, (install, configuration, session) = page()
        self.install(install)
        self.configure(configuration)
        self.start_nodes(section)
        session = self.take_exports(session)
        wait_until(lambda: "both nodes are up", self.both_up)
        turns = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.M)
        self.assertEqual([command.split()[1] for command, _ in turns], ["status", "start", "fetch"])
        said = {command.split()[1]: (self.shell(0, command), shown) for command, shown in turns}
        out, shown = said["status"]
        for line in shown.splitlines():
            if line != "...":
                self.assertIn(line + "\n", out)
        run = re.search(r"^lenet-\d{8}-\d{4}-[0-9a-f]{4}$", said["start"][0], re.M)[0]
        self.assertIn(f"run {run} COMPLETED\ntgctl fetch {run} -o DIR gets the model\n", said["start"][0])
        self.assertRegex(said["fetch"][0], r"all 2 members agree on digest [0-9a-f]{16} at step 20\n")
        self.assertTrue(os.path.exists(os.path.join(self.home(0), "lenet", "model.safetensors")))
        # The MNIST command is one that tgctl takes: what is missing is the data.
        mnist = re.search(r"`(tgctl start lenet-mnist --set data-dir=/srv/mnist)`", section)[1]
        missing = subprocess.run(
            [*self.network.prefixes[1], *shlex.split(mnist.replace("/usr/local", self.local))], cwd=self.home(1), env=self.environment(),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)  # fmt: skip
        if not os.path.isdir("/srv/mnist"):
            self.assertEqual(missing.returncode, 2, missing)
            self.assertIn("/srv/mnist", missing.stderr)
        for node in self.nodes:  # "until Ctrl-C"
            node.send_signal(signal.SIGINT)
        for node in self.nodes:
            self.assertEqual(node.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
