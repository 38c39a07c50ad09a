"""The README's "Three machines in five commands", word by word: its tgd.conf and its commands, on three machines that are network
namespaces with the page's addresses. Only the folder /usr/local, ssh and the number of steps are others."""

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
NAMES, ADDRESSES = ("node-a", "node-b", "node-c"), ("10.0.0.1", "10.0.0.2", "10.0.0.3")
SHORT = ["--set", "steps=20", "--set", "evaluate-every=0"]


def page():
    """The section, its tgd.conf, and its commands as (machine or "each", command, what the page shows of its output)."""
    section = re.search(r"^## Three machines in five commands\n(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S)[1]
    configuration, session = re.findall(r"^```\n(.*?)^```$", section, re.M | re.S)
    turns = []
    for line in session.splitlines():
        prompt = re.match(r"(each|node-a)\$ (.*?)(?: +# .*)?$", line)
        if prompt:
            turns.append((prompt[1], prompt[2], []))
        else:
            turns[-1][2].append(line)
    return section, configuration, turns


class ThreeMachines(unittest.TestCase):
    def setUp(self):
        try:
            self.network = Network(len(NAMES), addresses=ADDRESSES).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.__exit__)
        self.folder = tempfile.mkdtemp(prefix="tgd-page-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.local = os.path.join(self.folder, "usr-local")
        own = {name: value for name, value in os.environ.items() if name not in OF_TESTS}
        self.environment = own | {"PATH": os.path.join(self.local, "bin") + ":" + os.environ["PATH"]}
        self.nodes = []

    def home(self, machine):
        home = os.path.join(self.folder, NAMES[machine])
        os.makedirs(home, exist_ok=True)
        return home

    def shell(self, machine, command, code=0, more=()):
        """A command line of the page on that machine: stdout and stderr together, as a reader sees them."""
        done = subprocess.run(
            [*self.network.prefixes[machine], *shlex.split(command), *more], cwd=self.home(machine), env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)  # fmt: skip
        self.assertEqual(done.returncode, code, f"$ {command}\n{done.stdout}")
        return done.stdout

    def install(self):
        """Its last command; building is what has made this test, in the page's folder build/release."""
        self.assertIn('cmake --install "build/$preset" --prefix "$prefix"', (ROOT / "deploy" / "install-tgd").read_text())
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.local], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        for path in ("bin/tgd", "bin/tgctl", "share/tgd/tgd.conf", "share/tgd/jobs/reference.job"):
            self.assertTrue(os.path.exists(os.path.join(self.local, path)), path)

    def copy_to_the_others(self, command):
        """The page's loop, with a copy for scp."""
        loop = re.fullmatch(r"for host in (.*); do scp -p (.*) \$host: ; done", command)
        self.assertEqual(tuple(loop[1].split()), ADDRESSES[1:])
        for file in loop[2].split():
            for machine in range(1, len(NAMES)):
                shutil.copy2(os.path.join(self.home(0), file), self.home(machine))

    def start_node(self, machine, command):
        log = open(os.path.join(self.home(machine), "log"), "w")
        self.addCleanup(log.close)
        node = subprocess.Popen(
            [*self.network.prefixes[machine], *shlex.split(command.replace(NAMES[0], NAMES[machine]))], cwd=self.home(machine), env=self.environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_us)  # fmt: skip
        self.nodes.append(node)
        self.addCleanup(node.wait)
        self.addCleanup(node.kill)

    def all_up(self):
        done = subprocess.run(
            [*self.network.prefixes[0], "tgctl", "status", "--check", "--key", "cluster.key"], cwd=self.home(0), env=self.environment, capture_output=True)  # fmt: skip
        return done.returncode == 0

    def test_command_by_command(self):
        section, configuration, turns = page()
        self.assertEqual([where for where, _, _ in turns], ["each", "node-a", "node-a", "each", "node-a"])
        install, keygen, copy, daemon, start = (command for _, command, _ in turns)
        self.assertEqual(install, "deploy/install-tgd")
        self.install()
        with open(os.path.join(self.home(0), "tgd.conf"), "w") as file:
            file.write(configuration)
        self.shell(0, keygen)
        self.copy_to_the_others(copy)
        for machine in range(len(NAMES)):
            self.start_node(machine, daemon)
        wait_until(lambda: "all nodes are up", self.all_up)
        said = self.shell(0, start, more=SHORT)
        run = re.search(r"^lenet-\d{8}-\d{4}-[0-9a-f]{4}$", said, re.M)[0]
        for line in turns[4][2]:
            if line != "...":
                self.assertIn(re.sub(r"lenet-\d{8}-\d{4}-[0-9a-f]{4}", run, line) + "\n", said)
        # The MNIST command is one that tgctl takes: what is missing is the data.
        mnist = " ".join(re.search(r"`(tgctl\s+start\s+lenet-mnist --set data-dir=/srv/mnist --key cluster.key)`", section)[1].split())
        if not os.path.isdir("/srv/mnist"):
            self.assertIn("/srv/mnist", self.shell(1, mnist, code=2))
        for node in self.nodes:  # "until Ctrl-C"
            node.send_signal(signal.SIGINT)
        for node in self.nodes:
            self.assertEqual(node.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
