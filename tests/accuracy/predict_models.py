#!/usr/bin/env python3
"""predict_models.py TGD_TRAIN_STEPS [MODEL...] [--side N] [--batch N] [--classes N] [--seed N]: predict.py's network beside
tgd's engine: logits in evaluation of random images, from random parameters and the statistics of a batch, of every model.
Needs PyTorch and numpy alone."""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ctl" / "fetch"))
import predict  # noqa: E402

MODELS = ["lenet", "cifarnet", "mlp", "resnet-20", "resnet-18", "resnet-50", "alexnet", "alexnet-two-column", "vgg-a", "googlenet", "googlenet-slim"]
LOGITS = 1e-4  # of the largest: float32 sums in another order, through up to 50 layers


def compare(program, model, keys):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        subprocess.run([program, model, out, "steps=1", *(f"{key}={value}" for key, value in keys.items())], check=True)
        result = json.loads((out / "result.json").read_text())
        tensors, _ = predict.read_tensors(out / "start.safetensors")
        shape = (result["batch"], *result["input"])
        images = np.fromfile(out / "batches.f32", np.float32)[: int(np.prod(shape))].reshape(shape)
    ours = np.array(result["logits"], np.float32)
    theirs = predict.Network(result["graph"], tensors)(images)
    assert theirs.shape == (result["batch"], result["classes"]), theirs.shape
    apart = float(np.abs(ours - theirs.ravel()).max() / np.abs(ours).max())
    good = apart <= LOGITS and len(set(theirs.ravel().tolist())) > theirs.size // 2
    print(f"{model}: {'x'.join(map(str, shape))}, {len(tensors)} tensors; logits up to {np.abs(ours).max():.3g}, apart {apart:.1e} of that"
          f"{'' if good else f' BEYOND {LOGITS}'}", flush=True)
    return good


def compare_pooling():
    """PyTorch's own pooling knows the same windows where paddings are alike: every one of them, also what no model has."""
    torch, count = predict.torch, 0
    for kernel, stride, ceil, height, width in itertools.product(range(1, 6), range(1, 4), (False, True), range(5, 10), range(5, 10)):
        x = torch.randn(2, 3, height, width)
        for padding, dilation in itertools.product(range(kernel // 2 + 1), (1, 2)):
            one = {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": [padding] * 4, "ceil": ceil}
            if dilation * (kernel - 1) + 1 <= min(height, width) + 2 * padding:
                assert torch.equal(predict.max_pooling(one, None, x), torch.nn.functional.max_pool2d(x, kernel, stride, padding, dilation, ceil)), one
                count += 1
    print(f"pooling: {count} kinds of windows as PyTorch's own")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("models", nargs="*")
    for key, default in (("side", 0), ("batch", 2), ("classes", 0), ("seed", 1)):
        parser.add_argument("--" + key, type=int, default=default)
    options = parser.parse_args()
    keys = {key: getattr(options, key) for key in ("side", "batch", "classes", "seed")}
    compare_pooling()
    sys.exit(0 if all([compare(options.program, model, keys) for model in options.models or MODELS]) else 1)


if __name__ == "__main__":
    main()
