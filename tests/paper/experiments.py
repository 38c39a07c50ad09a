"""The paper's experiments that this project can compute, as tables: which job, which members, which rows.

Wen et al., TernGrad, NIPS 2017. `paper`: the numbers that it prints, in percent, by (row, members); a figure prints none.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Experiment:
    title: str
    job: str  # in deploy/jobs
    rows: dict  # name -> settings
    members: dict  # how many -> settings; every row is computed with each
    pairs: tuple = ()  # (row, the row that it is compared with)
    layer: str = ""  # whose zeros are shown over the steps, Figure 4c
    paper: dict = field(default_factory=dict)


FLOAT = {"gradients": "float32"}
TERNARY = {"gradients": "ternary"}
REPO = TERNARY | {"scaler": "repo"}  # the authors' code: every member clips by the shared scaler
SGD = {"optimizer": "sgd", "learning-rate": "0.1"}
LENET = {1: {}, 4: {}, 16: {}, 64: {}}  # the batch stays 64

EXPERIMENTS = {
    "figure-3a": Experiment(
        "LeNet on MNIST, momentum", "lenet-mnist", {"float32": FLOAT, "ternary": TERNARY, "ternary, repo": REPO}, LENET,
        (("ternary", "float32"), ("ternary, repo", "float32"))),
    "figure-3b": Experiment(
        "LeNet on MNIST, plain SGD", "lenet-mnist",
        {"float32": FLOAT | SGD, "ternary": TERNARY | SGD, "ternary, repo": REPO | SGD}, LENET,
        (("ternary", "float32"), ("ternary, repo", "float32"))),
    "table-1": Experiment(
        "CifarNet on CIFAR-10, Adam, 64 and 128 samples a member", "cifarnet-cifar10", {"float32": FLOAT, "ternary": TERNARY},
        {2: {"global-batch": 128, "steps": 300000}, 16: {"global-batch": 2048, "steps": 18750}},
        (("ternary", "float32"),), "fc1.weight",
        {("float32", 2): 86.56, ("ternary", 2): 85.64, ("float32", 16): 83.19, ("ternary", 16): 82.80}),
    "clipping": Experiment(
        "CifarNet on CIFAR-10, Adam: what each part of the recipe does", "cifarnet-cifar10",
        {"float32": FLOAT, "float16": {"gradients": "float16"}, "ternary": TERNARY, "no clipping": TERNARY | {"clip-sigma": "0"},
         "own scalers": TERNARY | {"scaler-sharing": "none"}, "float32 last layer": TERNARY | {"last-layer": "float32"},
         "decay outside": TERNARY | {"weight-decay-path": "outside"}},
        {2: {}}, (("ternary", "float32"), ("no clipping", "ternary"), ("own scalers", "ternary"), ("float32 last layer", "ternary"),
                  ("decay outside", "ternary"), ("float16", "float32")), "fc1.weight"),
}
