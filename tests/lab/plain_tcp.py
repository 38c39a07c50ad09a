#!/usr/bin/env python3
"""What TCP itself takes for the bytes of a step: plain sockets on the lab's links, nothing computed, nothing coded.

A step has two rounds. Every node sends its contributions to all others; a node whose contributions have all come sends its
totals to all others (none in the direct exchange). Each pair has a connection each way, as in tgd. A line to its standard
input starts a step on a node, one to its standard output says when it began and ended it: the step lasts from the first
beginning to the last end. A step of less than some milliseconds shows Python's wake-ups rather than TCP.
"""

import json
import select
import socket
import statistics
import subprocess
import sys
import time

STEPS, WARM_UP = 3, 1
PIECE_BYTES = 1 << 20  # in one call at most
DIED = "a node of plain TCP has died"


class Node:
    """One end of all its connections. One thread: sockets that have room or bytes, one after the other."""

    def __init__(self, address):
        self._listener = socket.create_server((address, 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._piece, self._taken = memoryview(bytes(PIECE_BYTES)), bytearray(PIECE_BYTES)

    def connect(self, peers):
        self._to = {one.fileno(): one for one in map(socket.create_connection, peers)}
        self._from = {one.fileno(): one for one in (self._listener.accept()[0] for _ in peers)}
        self._ready = select.epoll()
        for one in [*self._to.values(), *self._from.values()]:
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in self._from:
            self._ready.register(number, select.EPOLLIN)

    def step(self, contribution, total):
        """Bytes to each peer, and as many from it."""
        came, left = dict.fromkeys(self._from, 0), {}

        def send(count):
            for number in self._to if count else ():
                if not left.get(number):
                    self._ready.register(number, select.EPOLLOUT)
                left[number] = left.get(number, 0) + count

        send(contribution)
        waits = True  # for contributions
        while waits or any(left.values()) or min(came.values()) < contribution + total:
            for number, _ in self._ready.poll():
                if number in came:
                    count = self._from[number].recv_into(self._taken)
                    if count == 0:
                        raise ConnectionError(DIED)
                    came[number] += count
                else:
                    left[number] -= self._to[number].send(self._piece[: left[number]])
                    if left[number] == 0:
                        self._ready.unregister(number)
            if waits and min(came.values()) >= contribution:
                waits = False
                send(total)


def node_main(address, contribution, total):
    node = Node(address)
    print(node.port, flush=True)
    node.connect([tuple(peer) for peer in json.loads(sys.stdin.readline())])
    print("connected", flush=True)
    for _ in sys.stdin:
        begin = time.monotonic()
        node.step(int(contribution), int(total))
        print(begin, time.monotonic(), flush=True)


def seconds_per_step(lab, contribution, total):
    """Median of STEPS steps between all hosts of the lab, so many bytes from each to each other."""
    nodes = []

    def tell(lines):
        for node, line in zip(nodes, lines):
            node.stdin.write(line + "\n")
            node.stdin.flush()
        return hear()

    def hear():
        lines = [node.stdout.readline().split() for node in nodes]
        if not all(lines):
            raise ConnectionError(DIED)
        return lines

    try:
        for prefix, address in zip(lab.prefixes, lab.addresses):
            command = [*prefix, sys.executable, __file__, address, str(round(contribution)), str(round(total))]
            nodes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        listening = [(address, int(port)) for address, (port,) in zip(lab.addresses, hear())]
        tell(json.dumps([peer for peer in listening if peer != own]) for own in listening)
        seconds = []
        for _ in range(WARM_UP + STEPS):
            times = [[float(word) for word in line] for line in tell(["step"] * len(nodes))]
            seconds.append(max(end for _, end in times) - min(begin for begin, _ in times))
        return statistics.median(seconds[WARM_UP:])
    finally:
        for node in nodes:
            node.stdin.close()
            node.stdout.close()
            node.kill()
            node.wait()


if __name__ == "__main__":
    node_main(*sys.argv[1:])
