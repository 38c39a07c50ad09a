"""Files that the tests read and write: safetensors, metrics, small IDX and CIFAR-10 sets. Standard library only."""

import array
import collections
import json
import os
import random
import struct
import sys
import zlib

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


def write_safetensors(path, tensors):
    """Float32 tensors, (shape, array('f')) by name."""
    header, end = {}, 0
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [end, end + 4 * len(values)]}
        end += 4 * len(values)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, values in tensors.values():
            file.write(values.tobytes())


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


def png(width, height, pixels):
    """A grey picture of 8 bits."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + pixels[y * width : (y + 1) * width] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def write_pictures(folder, per_class=12, side=28, seed=1):
    """A folder per class, in train/ and test/: pictures that are dark, grey or bright, with noise."""
    draw = random.Random(seed)
    for part, count in (("train", per_class), ("test", per_class // 3)):
        for level, name in ((20, "dark"), (120, "grey"), (220, "bright")):
            os.makedirs(os.path.join(folder, part, name), exist_ok=True)
            noise = bytes(level + byte % 30 for byte in range(256))
            for i in range(count):
                pixels = draw.randbytes(side * side).translate(noise)
                with open(os.path.join(folder, part, name, f"{i:04}.png"), "wb") as file:
                    file.write(png(side, side, pixels))


def write_npy(path, kind, shape, values):
    """kind: numpy's letter and size, such as f4; values: of that shape, flat."""
    letter = {"f4": "f", "u1": "B", "i8": "q"}[kind]
    header = f"{{'descr': '{'|' if kind == 'u1' else '<'}{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}\n".encode()
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}{letter}", *values))


# The first bytes of a picture, as a user might save one under a data file's name.
PNG = bytes.fromhex("89504e470d0a1a0a0000000d494844520000001c0000001c0800000000") + bytes(2000)
