"""What nodes take of their machine."""

import collections
import os
import threading


class Gauge:
    """Peak memory and descriptors of each node, sampled."""

    def __init__(self, mesh):
        self.mesh, self.rss, self.files, self.ending = mesh, collections.Counter(), collections.Counter(), threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def loop(self):
        while not self.ending.wait(0.2):
            for node in self.mesh.nodes:
                try:
                    folder = f"/proc/{node.process.pid}"
                    with open(folder + "/statm") as file:
                        self.rss[node.name] = max(self.rss[node.name], int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
                    self.files[node.name] = max(self.files[node.name], len(os.listdir(folder + "/fd")))
                except (OSError, AttributeError, IndexError):
                    pass  # it is being started or has ended

    def end(self):
        self.ending.set()
        self.thread.join()
