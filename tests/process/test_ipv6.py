"""A mesh whose nodes know each other by IPv6 addresses."""

import socket
import unittest

from mesh import Mesh


class Ipv6(unittest.TestCase):
    def setUp(self):
        try:
            with socket.socket(socket.AF_INET6) as probe:
                probe.bind(("::1", 0))
        except OSError as error:
            self.skipTest(f"this machine has no IPv6 loopback address ::1: {error}")

    def run_at(self, settings):
        with Mesh(2, settings=settings, hosts=["::1", "::1"]) as mesh:
            run = mesh.start({"steps": 3})
            self.assertEqual(mesh.run(run, node=1)["state"], "COMPLETED")
            shown = mesh.ctl_ok("--address", f"[::1]:{mesh[1].port + 1}", "status").out
            self.assertIn(f"[::1]:{mesh[0].port + 1}", shown)
            mesh.fetch(run)

    def test_loopback(self):
        self.run_at({})

    def test_any_address(self):
        self.run_at({"listen": "::", "insecure": "true"})

    def test_without_brackets(self):
        with Mesh(1, hosts=["::1"]) as mesh:
            mesh.ctl("--address", f"::1:{mesh[0].port + 1}", "status").refuses(2, "host:port", "[::1]")


if __name__ == "__main__":
    unittest.main()
