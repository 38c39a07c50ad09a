"""Rotations of a mesh's cluster key, as the help of `tgctl keygen` has them."""

from patience import wait_until

STEPS = ("add", "use", "drop")


def rotate(mesh, readers=None):
    """The cluster key is another one afterwards. Each step is read by all nodes before the next one; with `readers`, by those
    that it names each time it is asked."""
    for step in STEPS:
        before = {node.name: node.log_text().count("event=keys-read") for node in mesh.nodes}
        mesh.keygen(mesh.key_file, "--rotate", step)

        def read():
            return all(node.log_text().count("event=keys-read") > before[node.name] for node in (readers() if readers else mesh.nodes))

        wait_until(f"--rotate {step} is read", read)
