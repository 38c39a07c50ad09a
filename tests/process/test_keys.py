"""A mesh with keys: which peers and clients get in, what each may do, what a wrong key says, and a rotation in the middle of a run."""

import json
import os
import shutil
import unittest

from mesh import QUICK, Mesh
from patience import wait_until

UNANSWERED, FORBIDDEN = 3, 7
NOT_WAITED_FOR = "10m"  # a start that waited so long would fail the test


class WithKeys(unittest.TestCase):
    def test_a_run_has_the_same_digest_with_and_without_keys(self):
        digests = set()
        for keys in (False, True):
            with Mesh(3, keys=keys) as mesh:
                run = mesh.start({"steps": 5})
                digests.add(mesh.run(run)["digest"])
                mesh.fetch(run, node=2)
        self.assertEqual(len(digests), 1, digests)

    def test_operators(self):
        with Mesh(2, keys=True) as mesh:
            mesh.keygen(mesh.key_file, "--operator", "alice")
            mesh.keygen(mesh.key_file, "--operator", "bob", "--read-only")
            alice, bob = (os.path.join(mesh.folder, name + ".key") for name in ("alice", "bob"))
            wait_until("the nodes have read the new operators", lambda: all("operators=2" in node.log_text() for node in mesh.nodes))
            run = mesh.ctl_ok("--key", alice, "start", mesh.job_file({"steps": 3}), node=1).out.strip()
            self.assertIn(run, mesh.ctl_ok("--key", bob, "status").out)
            mesh.ctl_ok("--key", bob, "logs", run)
            mesh.ctl_ok("--key", bob, "fetch", run, "-o", os.path.join(mesh.folder, "of-bob"))
            self.assertEqual([node.record(run)["fetched"] for node in mesh.nodes], [None, None])  # Reading marks nothing.
            mesh.ctl_ok("--key", alice, "fetch", run, "-o", os.path.join(mesh.folder, "of-alice"))
            for node in mesh.nodes:
                wait_until(f"{node.name}'s {run} is marked as fetched", lambda: node.record(run)["fetched"])
            for refused in (("start", mesh.job_file({})), ("delete", run)):
                mesh.ctl("--key", bob, *refused).ends(FORBIDDEN, "operator bob may only read")

    def test_an_operators_replaced_key_is_refused(self):
        with Mesh(2, keys=True) as mesh:
            mesh.keygen(mesh.key_file, "--operator", "alice")
            alice, before = (os.path.join(mesh.folder, name + ".key") for name in ("alice", "before"))
            wait_until("the nodes have read alice's key", lambda: all("operators=1" in node.log_text() for node in mesh.nodes))
            os.rename(alice, before)
            follower = mesh.follow("--key", before, "start", mesh.job_file({"steps": 100000, "data-train": 1024}))
            run = follower.first_line()
            mesh.wait_for_step(run, 1)
            self.leave_out_operators(mesh)
            mesh.keygen(mesh.key_file, "--operator", "alice")
            follower.finish().ends(FORBIDDEN, "no longer accepts this key", "The run is not affected")
            wait_until("the new key is read", lambda: mesh.ctl("--key", alice, "stop", run).code == 0)
            self.assertEqual(mesh.run(run)["state"], "STOPPED")

    def leave_out_operators(self, mesh):
        with open(mesh.key_file) as file:
            lines = [line for line in file if not line.startswith("operator")]
        with open(mesh.key_file + ".new", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.writelines(lines)
        os.rename(mesh.key_file + ".new", mesh.key_file)

    def test_strangers(self):
        with Mesh(2, keys=True) as mesh:
            other = os.path.join(mesh.folder, "other.key")
            mesh.keygen(other)
            mesh.keygen(mesh.key_file, "--operator", "carol")
            carol = os.path.join(mesh.folder, "carol.key")
            wait_until("the nodes have read the new operator", lambda: all("operators=1" in node.log_text() for node in mesh.nodes))
            shutil.copy(mesh.key_file, mesh.key_file + ".with")
            self.leave_out_operators(mesh)
            wait_until("the nodes have read that it is gone", lambda: all("operators=0" in node.log_text() for node in mesh.nodes))
            mesh.ctl("--key", "", "status").refuses(FORBIDDEN, "requires a key", "--key")
            mesh.ctl("--key", other, "status").refuses(FORBIDDEN, "another cluster key")
            mesh.ctl("--key", carol, "status").refuses(FORBIDDEN, "does not know this key")
            log = mesh[0].log_text()
            self.assertIn("event=connection-refused", log)
            self.assertRegex(log, r'event=handshake-failed port=control .*why="the cluster keys differ"')
            self.assertIn("from=127.", log)
            # A user's own local socket needs no key.
            self.assertIn("node-b", mesh.ctl_ok("--key", "", "--address", os.path.join(mesh[0].state_dir, "control.sock"), "status").out)

    def test_a_key_where_there_are_none(self):
        with Mesh(1) as mesh:
            other = os.path.join(mesh.folder, "other.key")
            mesh.keygen(other)
            mesh.ctl("--key", other, "status").refuses(FORBIDDEN, "another cluster key", "or none")

    def test_a_key_file_that_others_may_read(self):
        with Mesh(1, keys=True) as mesh:
            os.chmod(mesh.key_file, 0o644)
            mesh.ctl("status").refuses(2, "chmod 600 " + mesh.key_file)
            mesh.ctl("keygen", mesh.key_file).refuses(1, "already exists")


class AnotherKey(unittest.TestCase):
    def test_it_is_named_on_both_sides_and_ends_a_start_at_once(self):
        with Mesh(2, keys=True, absent={1}) as mesh:
            other = os.path.join(mesh.folder, "other.key")
            mesh.keygen(other)
            mesh.configure(1, key_file=other)
            mesh[1].start()
            for node, peer in ((0, "node-b"), (1, "node-a")):
                key = mesh.key_file if node == 0 else other

                def told():
                    rows = {row["name"]: row for row in self.nodes(mesh, node, key)}
                    return rows[peer]["state"] != "up" and "cluster key" in rows[peer]["problem"]

                wait_until(f"{mesh[node].name} says that {peer} has another cluster key", told)
            mesh.ctl("start", mesh.job_file({"start-timeout": NOT_WAITED_FOR})).ends(5, "node-b cannot join", "cluster key")

    def nodes(self, mesh, node, key):
        return json.loads(mesh.ctl_ok("--key", key, "status", "--json", node=node).out)["nodes"]


class Named(unittest.TestCase):
    """What keeps two nodes apart has a name of its own, with keys and without, in status and in the start that it ends."""

    def problem(self, mesh, peer, *words, node=0):
        def told():
            row = next(row for row in mesh.status(node=node)["nodes"] if row["name"] == peer)
            return row["state"] != "up" and all(word in row["problem"] for word in words)

        wait_until(lambda: f"{mesh[node].name} says {words} of {peer}: {mesh.status(node=node)['nodes']}", told)

    def lines(self, mesh, index, old, new):
        """Another line in that node's file."""
        with open(mesh[index].config) as file:
            text = file.read()
        self.assertIn(old, text)
        with open(mesh[index].config, "w") as file:
            file.write(text.replace(old, new))

    def test_a_peer_line_with_another_name(self):
        for keys in (True, False):
            with self.subTest(keys=keys), Mesh(2, keys=keys, absent={0, 1}) as mesh:
                self.lines(mesh, 0, "peer = node-b@", "peer = node-x@")
                for node in mesh.nodes:
                    node.start()
                mesh.wait_ready([])
                place = f"{mesh[1].host}:{mesh[1].port}"
                wait_until("node-a answers", lambda: mesh.ctl("status").code == 0)
                self.problem(mesh, "node-x", f"the node at {place} is called node-b, not node-x")
                answer = mesh.ctl("start", mesh.job_file({"start-timeout": NOT_WAITED_FOR})).ends(5, "node-x cannot join", "is called node-b, not node-x")
                self.assertNotIn("key", answer.err)

    def test_two_nodes_of_one_name(self):
        for keys in (True, False):
            with self.subTest(keys=keys), Mesh(3, keys=keys, absent={2}) as mesh:
                place = f"{mesh[2].host}:{mesh[2].port}"
                mesh.configure(2, listen=place)
                self.lines(mesh, 2, "node = node-c", "node = node-b")
                mesh[2].start()
                self.problem(mesh, "node-c", f"the node at {place} is called node-b, not node-c")
                self.problem(mesh, "node-c", f"the node at {place} is called node-b, as this one is", node=1)
                answer = mesh.ctl("start", mesh.job_file({"start-timeout": NOT_WAITED_FOR})).ends(5, "node-c cannot join", "is called node-b, not node-c")
                self.assertNotIn("key", answer.err)
                self.assertEqual(answer.err.split("node-c cannot join: ")[1].count("is called node-b"), 1, "said twice")

    def test_a_node_of_another_mesh(self):
        with Mesh(2, keys=True) as other, Mesh(2, keys=True, absent={1}) as mesh:
            self.lines(mesh, 0, f"peer = node-b@{mesh[1].host}:{mesh[1].port}", f"peer = node-b@{other[1].host}:{other[1].port}")
            mesh[0].end()
            mesh[0].start()
            wait_until("node-a answers", lambda: mesh.ctl("status").code == 0)
            self.problem(mesh, "node-b", "has another cluster key than node-a", "if it is a node of another mesh, correct the peer line of node-b")

    def test_a_node_without_keys(self):
        with Mesh(2, keys=True, absent={1}) as mesh:
            mesh.configure(1, key_file=None)
            mesh[1].start()
            self.problem(mesh, "node-b", "has no keys; give node-b the cluster key file of node-a")

    def test_a_name_that_does_not_resolve(self):
        with Mesh(2, absent={0, 1}) as mesh:
            mesh.configure(0)
            self.lines(mesh, 0, f"peer = node-b@{mesh[1].host}", "peer = node-b@node-b.invalid")
            mesh[0].start()
            wait_until("node-a answers", lambda: mesh.ctl("status").code == 0)
            self.problem(mesh, "node-b", "node-b.invalid does not resolve")
            answer = mesh.ctl("start", mesh.job_file({"start-timeout": "10s"})).ends(5)
            self.assertRegex(answer.err, r"(?m)^PENDING  \d+s  waiting for node-b: node-b\.invalid does not resolve")

    def test_the_mesh_port_is_no_control_port(self):
        with Mesh(1, keys=True) as mesh:
            port = ("--address", f"{mesh[0].host}:{mesh[0].port}")
            for words in (port, ("--key", "", *port)):
                answer = mesh.ctl(*words, "status")
                # On a busy machine tgctl does not wait for the refusal.
                answer.refuses(answer.code if answer.code == UNANSWERED else FORBIDDEN, "is this its control port (the mesh port + 1)?")


class Rotation(unittest.TestCase):
    def test_a_run_continues_through_all_its_steps(self):
        with Mesh(3, keys=True) as mesh:
            old = os.path.join(mesh.folder, "old.key")
            shutil.copy(mesh.key_file, old)
            followers = [mesh.follow("start", mesh.job_file({"steps": 100000, "data-train": 1024}))]
            run = followers[0].first_line()
            mesh.wait_for_step(run, 1)
            followers += [mesh.follow("wait", run, "--timeout", "1h", node=node) for node in (0, 1, 2)]
            left_behind = mesh.follow("--key", old, "wait", run, "--timeout", "1h", node=1)
            for number, step in enumerate(("add", "use", "drop"), start=1):
                mesh.keygen(mesh.key_file, "--rotate", step)
                wait_until(f"--rotate {step} is read", lambda: all(node.log_text().count("event=keys-read") == number for node in mesh.nodes))
                before = mesh.run(run)["step"]
                mesh.wait_for_step(run, before + 20)
            left_behind.finish().ends(FORBIDDEN, "it was rotated out", "The run is not affected")
            mesh.ctl("--key", old, "status").ends(FORBIDDEN)
            # Each mesh port was bound with the new key, which has cut its links; no member was evicted for that.
            for node in mesh.nodes:
                self.assertRegex(node.log_text(), "event=connection-lost|is being bound with the new cluster key")
            mesh.ctl_ok("stop", run)
            shown = mesh.run(run)
            self.assertEqual((shown["state"], shown["left"]), ("STOPPED", []))
            self.assertGreater(shown["view"], 1)
            for follower in followers:
                follower.finish().ends(0)
            mesh.wait_ready()
            mesh.start(QUICK)


if __name__ == "__main__":
    unittest.main()
