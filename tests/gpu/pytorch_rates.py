#!/usr/bin/env python3
"""Training rates of PyTorch on the device: forward, backward, fused SGD with momentum; synthetic batch that stays there. Takes
{"model", "batch", "seconds"} as lines of JSON, answers each with a line for every variant that it had time for, and {"done": true}.
Variants: strict float32 and TF32; contiguous and channels_last; eager, and captured as one CUDA graph per step."""

import json
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "accuracy"))
import networks

SHAPES = {"lenet": (1, 28, 28), "cifarnet": (3, 24, 24)}
CLASSES = {"lenet": 10, "cifarnet": 10}
BLOCK, LEAST_BLOCKS, SECONDS = 10, 3, 0.5  # steps between two looks at the clock; blocks, and time of one variant
# The likely best first: what there is no time for is left out.
VARIANTS = (
    ("fp32", "contiguous", "captured", False), ("tf32", "contiguous", "captured", False), ("tf32", "channels_last", "captured", False),
    ("fp32", "contiguous", "eager", False), ("tf32", "channels_last", "eager", False), ("fp32", "channels_last", "captured", False),
    ("fp32", "contiguous", "captured", True), ("tf32", "contiguous", "captured", True), ("tf32", "contiguous", "eager", False),
    ("fp32", "channels_last", "eager", False),
)  # fmt: skip


def make_step(model, batch, layout, how):
    """A function that trains one step."""
    shape, classes = SHAPES.get(model, (3, 224, 224)), CLASSES.get(model, 1000)
    torch.manual_seed(1)
    network = networks.make(model, shape, classes, dropout=True).cuda().train()
    images = torch.randn(batch, *shape, device="cuda")
    labels = torch.randint(0, classes, (batch,), device="cuda")
    if layout == "channels_last":
        network, images = (each.to(memory_format=torch.channels_last) for each in (network, images))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9, fused=True)
    entropy = torch.nn.functional.cross_entropy

    def step():
        optimizer.zero_grad(set_to_none=True)
        outputs = network(images)
        if isinstance(outputs, tuple):
            loss = entropy(outputs.logits, labels) + 0.3 * (entropy(outputs.aux_logits1, labels) + entropy(outputs.aux_logits2, labels))
        else:
            loss = entropy(outputs, labels)
        loss.backward()
        optimizer.step()
        return loss

    if how == "eager":
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def rate_of(model, batch, math, layout, how, deterministic):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = math == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = deterministic
    step = make_step(model, batch, layout, how)
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    times, begun = [], time.perf_counter()
    while len(times) < LEAST_BLOCKS or time.perf_counter() - begun < SECONDS:
        start = time.perf_counter()
        for _ in range(BLOCK):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / BLOCK)
    return batch / statistics.median(times)


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        end = time.monotonic() + asked["seconds"]
        for math, layout, how, deterministic in VARIANTS:
            if time.monotonic() > end:
                break
            name = f"{how} {layout}{' deterministic' if deterministic else ''}"
            try:
                row = {"math": math, "how": name, "rate": rate_of(asked["model"], asked["batch"], math, layout, how, deterministic)}
            except Exception as reason:
                row = {"math": math, "how": f"{name}: {type(reason).__name__} {str(reason)[:120]}", "rate": 0}
            print(json.dumps(row), flush=True)
            torch.cuda.empty_cache()
        print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main()
