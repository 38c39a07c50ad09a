"""Addresses and ports on loopback that parallel tests do not share."""

import itertools
import os
import socket


def with_port(host, port):
    """host:port as the programs write it: an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def own_loopback_address():
    """Linux answers on all of 127/8: an address of its own for each test process keeps parallel tests apart."""
    pid = os.getpid()
    return f"127.{1 + (pid >> 16) % 200}.{(pid >> 8) % 256}.{pid % 256}"


_next_port = itertools.count(20000 + os.getpid() % 1000 * 10, 2)


def free_port_pair(host):
    """A mesh port whose control port, the one above it, is free too. Never handed out twice by one process."""
    for port in _next_port:
        if port > 32000:
            break
        try:
            for one in (port, port + 1):
                with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind((host, one))
            return port
        except OSError:
            continue
    raise RuntimeError(f"no two neighbouring ports are free on {host}")
