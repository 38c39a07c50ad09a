"""A member dies, and another one in the middle of the change that follows, at each of its points; links that part the nodes.
The run goes on where enough voters are left, or is PAUSED until one is back; what all nodes have on their disks keeps the
promises of history.py. (Random deaths: test_kills.)"""

import signal
import unittest

from disks import SmallDisks
from history import History
from kills import settings
from mesh import Mesh
from network import Network, NetworkUnavailable
from patience import wait_until

LONG = {"steps": 100000, "schedule": "constant", "data-train": 1024}  # ended by a stop
HURT = {"steps": 50, "schedule": "constant"}  # about a second


def states(mesh, run, nodes):
    return {mesh[index].name: mesh.run(run, index)["state"] for index in nodes}


def wait_for_states(mesh, run, nodes, state):
    seen = {}

    def there():
        seen.update(states(mesh, run, nodes))
        return set(seen.values()) == {state}

    wait_until(lambda: f"{run} is {state}: {seen}", there)


def wait_for_one_end(mesh, run, state):
    ends = {}

    def there():
        ends.update({node.name: node.record(run)["state"] for node in mesh.nodes})
        return set(ends.values()) == {state}

    wait_until(lambda: f"{run} has ended as {state} on all nodes: {ends}", there)


class Faults(unittest.TestCase):
    """node-a is the most senior one and leads."""

    @classmethod
    def setUpClass(cls):
        cls.meshes = {}

    @classmethod
    def tearDownClass(cls):
        for mesh in cls.meshes.values():
            mesh.__exit__(None, None, None)

    def mesh(self, nodes):
        if nodes not in self.meshes:
            self.meshes[nodes] = Mesh(nodes, settings()).__enter__()
        return self.meshes[nodes]

    def changes(self, nodes, index, fault, pauses, members):
        """The last node is killed, then this one has its fault. Members of the last view: these. A run that pauses goes on as
        soon as this node is back."""
        mesh, victim = self.mesh(nodes), nodes - 1
        try:
            mesh.configure(index, fault=fault)
            mesh.restart([index])
            run = mesh.detach(HURT, node=1 - index if nodes == 3 else 2)
            mesh.wait_for_step(run, 3)
            mesh[victim].signal(signal.SIGKILL)
            mesh[victim].wait()
            survivors = [one for one in range(nodes - 1) if one != index]
            self.meets(mesh, run, index, fault, survivors, pauses)
            wait_for_states(mesh, run, survivors, "COMPLETED")
            for one in (index, victim):
                if not mesh[one].alive():
                    mesh.configure(one, fault=None)
                    mesh[one].start()
            mesh.wait_ready()
            wait_for_one_end(mesh, run, "COMPLETED")
            history = History.of(mesh.nodes, run).check()
            last = max(history.views().values(), key=lambda view: view.view)
            self.assertEqual(last.members, tuple(mesh[one].name for one in members), history.summary())
        except BaseException:
            del self.meshes[nodes]
            mesh.__exit__(AssertionError, None, None)
            raise

    def meets(self, mesh, run, index, fault, survivors, pauses):
        pauses_itself = fault.startswith("pause@")
        if not pauses_itself:
            self.assertEqual(mesh[index].wait(), -signal.SIGKILL)
        if not pauses:
            return
        wait_for_states(mesh, run, survivors, "PAUSED")
        self.assertIn(f"resumes when {mesh[index].name}", mesh.run(run, survivors[0])["reason"])
        mesh.configure(index, fault=None)
        if pauses_itself:
            mesh[index].signal(signal.SIGCONT)
        else:
            mesh[index].start()

    def test_promise(self):
        self.changes(4, 1, "kill@promise:1", pauses=False, members=(0, 2))

    def test_promise_of_the_coordinator(self):
        self.changes(3, 0, "kill@promise:1", pauses=True, members=(1,))

    def test_accept(self):
        self.changes(4, 1, "kill@accept:1", pauses=False, members=(0, 2))

    def test_decide(self):
        """A quorum has accepted, and the coordinator that has counted it dies: its vote is needed, and the value stays."""
        self.changes(4, 0, "kill@decide:1", pauses=True, members=(1, 2))

    def test_decided(self):
        """The only one that knows the decision dies, and tells it when it is back."""
        self.changes(4, 0, "kill@decided:1", pauses=True, members=(1, 2))

    def test_install(self):
        self.changes(4, 1, "kill@install:1", pauses=False, members=(0, 2))

    def test_a_leader_that_wakes_up(self):
        self.changes(3, 0, "pause@decide:1", pauses=True, members=(0, 1))


class FullDisk(unittest.TestCase):
    def test_a_vote_has_its_place(self):
        """node-c's disk fills, then node-b dies: node-c's vote is needed, takes no new space, and the run goes on."""
        with SmallDisks(3) as mesh:
            if mesh.why_not:
                self.skipTest(mesh.why_not)
            run = mesh.detach(LONG)
            mesh.wait_for_step(run, 3)
            mesh.fill(mesh[2])
            mesh[1].signal(signal.SIGKILL)
            mesh[1].wait()
            for index in (0, 2):
                wait_until(lambda: f"{run} goes on: {mesh.run(run, index)}", lambda: (mesh.run(run, index)["view"], mesh.run(run, index)["state"]) == (2, "RUNNING"))
                self.assertEqual([member["node"] for member in mesh.run(run, index)["members"]], ["node-a", "node-c"])
            mesh.wait_for_step(run, mesh.run(run)["step"] + 5)
            mesh.free(mesh[2])
            mesh.ctl("stop", run)
            wait_for_states(mesh, run, (0, 2), "STOPPED")
            self.assertNotIn("event=vote-failed", mesh[2].log_text())


class Parted(unittest.TestCase):
    """Nodes in namespaces whose links are cut while they train, and healed. (At any links: Schedules, ChooseView.)"""

    def parted(self, nodes, cut, go_on, out):
        """These go on; the others are PAUSED where no node can reach them, and learn at healing that they are out."""
        try:
            network = Network(nodes, cut=True).__enter__()
        except NetworkUnavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(network.__exit__)
        with Mesh(nodes, settings(network=True), hosts=network.addresses, prefixes=network.prefixes) as mesh:
            run = mesh.detach(LONG)
            mesh.wait_for_step(run, 3)
            cut(network)
            wait_until("the others go on without them", lambda: all(self.view(mesh, one, run) >= 2 for one in go_on))
            step = mesh.run(run, go_on[0])["step"]
            mesh.wait_for_step(run, step + 20, node=go_on[0])
            if len(out) > 1:
                wait_for_states(mesh, run, out, "PAUSED")
            network.heal()
            wait_until(lambda: f"they know that they are out: {[mesh[one].record(run)['state'] for one in out]}",
                       lambda: all(mesh[one].record(run)["state"] == "INTERRUPTED" for one in out))
            mesh.wait_for_step(run, mesh.run(run, go_on[0])["step"] + 5, node=go_on[0])
            mesh.ctl_ok("stop", run, node=go_on[0])
            wait_for_one_end(mesh, run, "STOPPED")
            history = History.of(mesh.nodes, run).check()
            last = max(history.views().values(), key=lambda view: view.view)
            self.assertEqual(last.members, tuple(mesh[one].name for one in go_on), history.summary())
            print(f"{history.summary()}")

    @staticmethod
    def view(mesh, index, run):
        return mesh[index].record(run)["view"]

    def test_two_of_four(self):
        """The half with the most senior one goes on."""
        self.parted(4, lambda network: [network.part(one, other) for one in (0, 1) for other in (2, 3)], [0, 1], [2, 3])

    def test_one_way(self):
        self.parted(3, lambda network: network.cut(1), [0, 2], [1])

    def test_the_member_without_most_links(self):
        self.parted(4, lambda network: [network.part(1, other) for other in (2, 3)], [0, 2, 3], [1])


if __name__ == "__main__":
    unittest.main()
