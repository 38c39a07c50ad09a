#!/usr/bin/env python3
"""pytorch_models.py TGD_TRAIN_STEPS [MODEL...] [--steps N] [--batch N] [--side N] [--classes N] [--rate R] [--threads N]: tgd's
engine and PyTorch from the same parameters on the same images, all models by default: logits in evaluation, those of predict.py
too, which `tgctl fetch` writes; the first step's gradient and running statistics, and the loss of every step. Names are checked
strictly. torchvision's networks are its own classes. Needs PyTorch, torchvision and numpy."""

import argparse
import copy
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ctl" / "fetch"))
import networks  # noqa: E402
import predict  # noqa: E402

MODELS = ("lenet", "cifarnet", "mlp", "resnet-20", "resnet-18", "resnet-50", "alexnet", "alexnet-two-column", "vgg-a", "googlenet", "googlenet-slim")

# All float32 sums in another order. Of the logits' largest; of the gradient's length, all tensors together; of a statistic's length;
# of the loss. The gradient's is wide for one reason: of some 100,000 values at a ReLU or a maximum behind a batch normalization,
# now and then one lies so near 0 that it falls the other way, and moves what was a sum of many opposite signs. From PyTorch in
# float64, PyTorch in float32 is as far off as we are (ResNet-20 at batch 8: 1e-6 to 6e-3, ResNet-50 at batch 2: 2e-2 and 3e-2).
LOGITS, GRADIENT, STATISTICS, LOSS = 1e-4, 5e-2, 1e-4, 1e-3


def loss_of(outputs, labels):
    if not isinstance(outputs, tuple):
        return F.cross_entropy(outputs, labels)
    return F.cross_entropy(outputs.logits, labels) + 0.3 * (F.cross_entropy(outputs.aux_logits1, labels) + F.cross_entropy(outputs.aux_logits2, labels))


def distance(ours, theirs):
    return float((ours - theirs).norm() / theirs.norm().clamp_min(1e-30))


def furthest(ours, theirs):
    return max(abs(one - other) / other for one, other in zip(ours, theirs))


def train(network, images, labels, rate, first_step=lambda network: None):
    """The loss of every step of plain SGD."""
    optimizer = torch.optim.SGD(network.parameters(), lr=rate)
    losses = []
    for step in range(len(images)):
        optimizer.zero_grad()
        loss = loss_of(network(images[step]), labels[step])
        loss.backward()
        if step == 0:
            first_step(network)
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare(program, model, options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        keys = [f"{key}={getattr(options, key)}" for key in ("steps", "batch", "side", "classes", "rate", "threads", "seed")]
        subprocess.run([program, model, out, *keys], check=True)
        result = json.loads((out / "result.json").read_text())
        start, first = (predict.read_tensors(out / f"{name}.safetensors")[0] for name in ("start", "first"))
        raw = np.fromfile(out / "batches.f32", np.float32)
    count, batch, shape = len(result["losses"]), result["batch"], result["input"]
    images = torch.from_numpy(raw[:-count * batch].reshape(count, batch, *shape))
    labels = torch.from_numpy(raw[-count * batch:].astype(np.int64).reshape(count, batch))

    predicted = torch.as_tensor(predict.Network(result["graph"], start)(images[0].numpy()))
    start, first = ({name: torch.tensor(values) for name, values in tensors.items()} for tensors in (start, first))
    network = networks.make(model, shape, result["classes"])
    network.load_state_dict(start, strict=True)
    network.eval()
    with torch.no_grad():
        expected = network(images[0])
    ours = torch.tensor(result["logits"]).reshape(expected.shape)
    worst = {name: float((ours - theirs).abs().max() / expected.abs().max()) for name, theirs in (("logits", expected), ("predict.py", predicted))}
    network.train()
    exact = copy.deepcopy(network).double() if options.double else None

    def first_step(trained):
        gradients = {name: value.grad for name, value in trained.named_parameters()}
        worst["gradient"] = distance(*(torch.cat([each[name].flatten() for name in gradients]) for each in (first, gradients)))
        running = [distance(first[name], value) for name, value in trained.named_buffers() if "running" in name]
        worst["statistics"] = max(running, default=0.0)

    losses = train(network, images, labels, result["rate"], first_step)
    worst["loss"] = furthest(result["losses"], losses)
    bounds = {"logits": LOGITS, "predict.py": LOGITS, "gradient": GRADIENT, "statistics": STATISTICS, "loss": LOSS}
    good = all(worst[name] <= bounds[name] for name in bounds)
    parameters = sum(value.numel() for value in network.parameters())
    print(f"{model}: {parameters:,} parameters, {shape[1]}x{shape[2]}, batch {batch}; logits {worst['logits']:.1e}, predict.py {worst['predict.py']:.1e}, gradient {worst['gradient']:.1e}, "
          f"statistics {worst['statistics']:.1e}, loss {worst['loss']:.1e} over {count} steps ({losses[0]:.4f} to {losses[-1]:.4f})"
          f"{'' if good else ' BEYOND ' + str(bounds)}", flush=True)
    if exact is not None:
        exactly = train(exact, images.double(), labels, result["rate"])
        print(f"{model}: losses of PyTorch in float64: PyTorch in float32 is off by {furthest(losses, exactly):.1e}, we by {furthest(result['losses'], exactly):.1e}")
    return good


def compare_pooling():
    """PyTorch's own pooling knows the same windows as predict.py where paddings are alike: each of them, also what no model has."""
    for kernel, stride, ceil, height, width in itertools.product(range(1, 6), range(1, 4), (False, True), range(5, 10), range(5, 10)):
        x = torch.randn(2, 3, height, width)
        for padding, dilation in itertools.product(range(kernel // 2 + 1), (1, 2)):
            one = {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": [padding] * 4, "ceil": ceil}
            if dilation * (kernel - 1) + 1 <= min(height, width) + 2 * padding:
                assert torch.equal(predict.max_pooling(one, None, x), F.max_pool2d(x, kernel, stride, padding, dilation, ceil)), one


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("models", nargs="*", default=MODELS)
    for key, default in (("steps", 1), ("batch", 2), ("side", 0), ("classes", 0), ("threads", 2), ("seed", 1)):
        parser.add_argument("--" + key, type=int, default=default)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--double", action="store_true", help="also how far both are from PyTorch in float64")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    compare_pooling()
    sys.exit(0 if all([compare(options.program, model, options) for model in options.models]) else 1)


if __name__ == "__main__":
    main()
