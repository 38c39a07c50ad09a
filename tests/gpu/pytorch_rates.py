#!/usr/bin/env python3
"""Training rates of PyTorch on the device: forward, backward, fused SGD with momentum; synthetic batch that stays there. First a
line of JSON with what it is, {"about"}, or {"wrong"}. Takes {"model", "batch", "seconds"} as lines, answers each with a line for
every variant that it had time for, and a last one with "done"; each names model and batch. Variants: strict float32, TF32 and
bf16 autocast; contiguous and channels_last; eager, and captured as one CUDA graph per step. --cpu: eager, to try this file."""

import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "paper"))
try:
    import networks
    import torch
except ImportError as reason:
    print(json.dumps({"wrong": f"PyTorch or torchvision cannot be imported: {reason}"}), flush=True)
    sys.exit(1)

SHAPES = {"lenet": (1, 28, 28), "cifarnet": (3, 24, 24)}
CLASSES = {"lenet": 10, "cifarnet": 10}
DEVICE = "cpu" if "--cpu" in sys.argv else "cuda"
BLOCK, LEAST_BLOCKS, SECONDS = 5, 3, 0.4  # steps between two looks at the clock; blocks, and time of one variant
# The likely best first, one of each arithmetic: what there is no time for is left out.
SMALL = (
    ("fp32", "contiguous", "captured", False), ("tf32", "contiguous", "captured", False), ("bf16", "contiguous", "captured", False),
    ("fp32", "contiguous", "captured", True), ("tf32", "contiguous", "captured", True), ("bf16", "channels_last", "captured", False),
    ("fp32", "contiguous", "eager", False), ("tf32", "contiguous", "eager", False), ("bf16", "contiguous", "eager", False),
)  # fmt: skip
LARGE = (
    ("fp32", "contiguous", "captured", False), ("tf32", "channels_last", "captured", False), ("bf16", "channels_last", "captured", False),
    ("tf32", "contiguous", "captured", False), ("bf16", "contiguous", "captured", False), ("fp32", "channels_last", "captured", False),
    ("fp32", "contiguous", "eager", False), ("tf32", "channels_last", "eager", False), ("bf16", "channels_last", "eager", False),
    ("fp32", "contiguous", "captured", True),
)  # fmt: skip


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def make_step(model, batch, math, layout, how):
    """A function that trains one step."""
    shape, classes = SHAPES.get(model, (3, 224, 224)), CLASSES.get(model, 1000)
    torch.manual_seed(1)
    network = networks.make(model, shape, classes, dropout=True).to(DEVICE).train()
    images = torch.randn(batch, *shape, device=DEVICE)
    labels = torch.randint(0, classes, (batch,), device=DEVICE)
    if layout == "channels_last":
        network, images = (each.to(memory_format=torch.channels_last) for each in (network, images))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9, fused=True)
    entropy = torch.nn.functional.cross_entropy

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=math == "bf16"):
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
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = math != "fp32"
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = deterministic
    step = make_step(model, batch, math, layout, how)
    for _ in range(5):
        step()
    synchronize()
    times, begun = [], time.perf_counter()
    while len(times) < LEAST_BLOCKS or time.perf_counter() - begun < SECONDS:
        start = time.perf_counter()
        for _ in range(BLOCK):
            step()
        synchronize()
        times.append((time.perf_counter() - start) / BLOCK)
    return batch / statistics.median(times)


def about():
    """What it is, when the device and its libraries have answered."""
    torch.ones(1, device=DEVICE).sum().item()
    if DEVICE == "cpu":
        return f"{torch.__version__}, {torch.get_num_threads()} threads"
    return f"{torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}, Python {sys.version.split()[0]}"


def answer(asked):
    end = time.monotonic() + asked["seconds"]
    model, batch = asked["model"], asked["batch"]
    for math, layout, how, deterministic in SMALL if model in SHAPES else LARGE:
        if time.monotonic() > end:
            return
        if DEVICE == "cpu" and how == "captured":
            continue
        name, rate = f"{how} {layout}{' deterministic' if deterministic else ''}", 0
        try:
            rate = rate_of(model, batch, math, layout, how, deterministic)
        except Exception as reason:
            name += f": {type(reason).__name__} {str(reason)[:120]}"
        yield {"math": math, "how": name, "rate": rate}
        if DEVICE == "cuda":
            torch.cuda.empty_cache()


def main():
    try:
        print(json.dumps({"about": about()}), flush=True)
    except Exception as reason:
        print(json.dumps({"wrong": f"{type(reason).__name__}: {str(reason)[:300]}"}), flush=True)
        return
    for line in sys.stdin:
        asked = json.loads(line)
        case = {"model": asked["model"], "batch": asked["batch"]}
        for row in answer(asked):
            print(json.dumps(case | row), flush=True)
        print(json.dumps(case | {"done": True}), flush=True)


if __name__ == "__main__":
    main()
