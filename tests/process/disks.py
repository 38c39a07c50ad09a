"""Nodes whose state directories are small disks of their own, which fill and are freed."""

import errno
import os
import shutil
import subprocess

from mesh import Mesh

DISK_MIB = 160  # a run of LeNet leaves 25
FILLER = "filler"


class SmallDisks(Mesh):
    """A mesh, each node's state on a disk (tmpfs) of DISK_MIB. `why_not` says why there are none: then disks do not fill."""

    why_not = ""

    def __enter__(self):
        for node in self.nodes:
            os.makedirs(node.state_dir, exist_ok=True)
            made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tgd-test", node.state_dir], capture_output=True, text=True)
            if made.returncode != 0:
                self.why_not = f"no small disk for {node.name}: {made.stderr.strip()}"
                self.unmount()
                break
        return super().__enter__()

    def __exit__(self, kind, error, trace):
        try:
            return super().__exit__(kind, error, trace)
        finally:
            if kind is not None:
                self.keep()
            self.unmount()
            if kind is None:
                shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self):
        """Keeps what lies on the disks, to find out why a test failed."""
        for node in self.nodes:
            shutil.copytree(node.state_dir, node.state_dir + "-kept", ignore=shutil.ignore_patterns(FILLER, "*.sock"))

    def unmount(self):
        for node in self.nodes:
            subprocess.run(["umount", "--lazy", node.state_dir], capture_output=True)

    def fill(self, node, room=0):
        """Fills the disk to the last byte, but for so many."""
        path = os.path.join(node.state_dir, FILLER)
        try:
            with open(path, "ab", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 20))
        except OSError as full:
            if full.errno != errno.ENOSPC:
                raise
        os.truncate(path, os.path.getsize(path) - room)

    def free(self, node):
        try:
            os.unlink(os.path.join(node.state_dir, FILLER))
        except FileNotFoundError:
            pass
