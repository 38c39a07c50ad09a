"""Files that the tests read and write: safetensors, metrics, small IDX and CIFAR-10 sets. Standard library only."""

import array
import collections
import json
import os
import random
import struct
import sys

Tensor = collections.namedtuple("Tensor", "shape values")  # values: array('f')


def read_safetensors(path):
    """(tensors by name, metadata). Checks what the format promises: sizes, order, no holes, nothing left over."""
    with open(path, "rb") as file:
        blob = file.read()
    (header_bytes,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8 : 8 + header_bytes])
    data = blob[8 + header_bytes :]
    metadata = header.pop("__metadata__", {})
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        if entry["dtype"] != "F32" or begin != end or stop > len(data):
            raise ValueError(f"{path}: {name}: {entry} after byte {end}")
        end = stop
        values = array.array("f")
        values.frombytes(data[begin:stop])
        if sys.byteorder == "big":
            values.byteswap()
        count = 1
        for extent in entry["shape"]:
            count *= extent
        if count != len(values):
            raise ValueError(f"{path}: {name}: shape {entry['shape']} holds {count}, there are {len(values)}")
        tensors[name] = Tensor(tuple(entry["shape"]), values)
    if end != len(data):
        raise ValueError(f"{path}: {len(data) - end} bytes after the last tensor")
    return tensors, metadata


def read_metrics(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def write_idx(folder, train=60, test=20, seed=1):
    """MNIST's four files, with random images and labels."""
    os.makedirs(folder, exist_ok=True)
    draw = random.Random(seed)
    for part, count in (("train", train), ("t10k", test)):
        with open(os.path.join(folder, f"{part}-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, count, 28, 28) + draw.randbytes(count * 28 * 28))
        with open(os.path.join(folder, f"{part}-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, count) + bytes(draw.randrange(10) for _ in range(count)))


def write_cifar10(folder, per_batch=20, seed=1):
    """CIFAR-10's binary batches, with random images and labels."""
    os.makedirs(folder, exist_ok=True)
    draw = random.Random(seed)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        with open(os.path.join(folder, name), "wb") as file:
            for _ in range(per_batch):
                file.write(bytes([draw.randrange(10)]) + draw.randbytes(3 * 32 * 32))


# The first bytes of a picture, as somebody might save one under a data file's name.
PNG = bytes.fromhex("89504e470d0a1a0a0000000d494844520000001c0000001c0800000000") + bytes(2000)
