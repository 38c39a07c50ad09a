"""tgd as systemd runs it (Type=notify): the test holds the socket that systemd would."""

import os
import re
import signal
import socket
import unittest

from mesh import Mesh
from patience import PATIENCE

SPAN_S = 2  # the watchdog's; it is fed four times in it


class Service(unittest.TestCase):
    def setUp(self):
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        name = f"tgd-service-{os.getpid()}-{id(self)}"
        self.manager.bind("\0" + name)
        self.manager.settimeout(PATIENCE)
        for key, value in (("NOTIFY_SOCKET", "@" + name), ("WATCHDOG_USEC", str(SPAN_S * 1_000_000))):
            os.environ[key] = value
            self.addCleanup(os.environ.pop, key)

    def hear(self):
        return self.manager.recv(4096).decode()

    def hear_until(self, pattern):
        heard = []
        while not heard or not re.search(pattern, heard[-1]):
            heard.append(self.hear())
        return heard

    def silent_for(self, seconds):
        """Whether nothing of the watchdog comes for so long."""
        self.manager.settimeout(seconds)
        try:
            while True:
                if self.hear() == "WATCHDOG=1":
                    return False
        except TimeoutError:
            return True
        finally:
            self.manager.settimeout(PATIENCE)

    def test_a_life(self):
        with Mesh(1) as mesh:
            self.assertEqual(self.hear(), "READY=1")  # and never before the ports are open:
            with socket.create_connection((mesh[0].host, mesh[0].port + 1), timeout=PATIENCE):
                self.hear_until("^STATUS=node-a, 1 of 1 nodes up, no run$")
            self.hear_until("^WATCHDOG=1$")
            run = mesh.detach({"steps": 100000})
            self.hear_until(rf"^STATUS=node-a, 1 of 1 nodes up, run {run} RUNNING, step \d+ of 100000$")
            mesh.ctl_ok("stop", run)
            self.hear_until("no run$")
            mesh[0].signal(signal.SIGTERM)
            self.hear_until("^STOPPING=1$")

    def test_no_ready_where_the_port_is_taken(self):
        with socket.socket() as taken:
            mesh = Mesh(1)
            taken.bind((mesh[0].host, mesh[0].port))
            taken.listen()
            mesh[0].start()
            self.assertEqual(mesh[0].wait(), 1)
            mesh.__exit__(None, None, None)
        self.manager.setblocking(False)
        self.assertRaises(BlockingIOError, self.hear)

    def test_a_stuck_node_does_not_feed_the_watchdog(self):
        """Its other threads live: tgctl is answered."""
        mesh = Mesh(2, per_node={0: {"fault": "hang@scaler-wait:5"}}, absent=[1])
        self.addCleanup(mesh.__exit__, None, None, None)
        mesh[0].start()
        self.hear_until("^WATCHDOG=1$")
        self.assertFalse(self.silent_for(SPAN_S))
        del os.environ["NOTIFY_SOCKET"]  # the other node has no service manager
        self.addCleanup(os.environ.__setitem__, "NOTIFY_SOCKET", "")
        mesh[1].start()
        mesh.wait_ready()
        run = mesh.detach({"steps": 100000})
        self.assertTrue(any(self.silent_for(SPAN_S) for _ in range(100)), "the watchdog is fed on")
        self.assertTrue(self.silent_for(2 * SPAN_S), "the watchdog is fed again")
        self.assertTrue(mesh[0].alive())
        self.assertEqual(mesh.ctl("status", run, node=0).code, 0)
        mesh[0].kill()


if __name__ == "__main__":
    unittest.main()
