#!/usr/bin/env python3
"""pytorch_check.py FETCHED_DIR MNIST_DIR: a fetched LeNet, loaded strictly, must score in PyTorch what tgd measured (to 0.02 points)."""

import gzip
import json
import pathlib
import re
import struct
import sys

import numpy as np
import torch
from safetensors.torch import load_file

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from lenet import LeNet  # noqa: E402

TOLERANCE = 0.0002  # 0.02 points: two images of 10,000 that sit on a decision boundary


def idx(path):
    raw = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    dimensions = raw[3]
    shape = struct.unpack(f">{dimensions}I", raw[4:4 + 4 * dimensions])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def find(folder, stem):
    return next(p for p in (folder / f"{stem}-ubyte.gz", folder / f"{stem}-ubyte") if p.exists())


def main(fetched, mnist):
    network = LeNet()
    network.load_state_dict(load_file(str(fetched / "model.safetensors")), strict=True)
    network.eval()
    images = idx(find(mnist, "t10k-images-idx3")).astype(np.float32)
    labels = torch.from_numpy(idx(find(mnist, "t10k-labels-idx1")).astype(np.int64))
    inputs = torch.from_numpy((images / 255 - 0.5) * 2)[:, None]
    with torch.no_grad():
        correct = sum(int((network(inputs[i:i + 500]).argmax(1) == labels[i:i + 500]).sum()) for i in range(0, len(labels), 500))
    theirs = correct / len(labels)
    ours = json.loads((fetched / "run.json").read_text())["evaluation"]["accuracy"]
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    library = pathlib.Path("/usr/lib/x86_64-linux-gnu/libblas.so.3").resolve()
    print(f"PyTorch {torch.__version__}: {100 * theirs:.2f} %, tgd: {100 * ours:.2f} % "
          f"(BLAS {blas.group(1) if blas else 'unknown'}, {library})")
    return 0 if abs(theirs - ours) <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
