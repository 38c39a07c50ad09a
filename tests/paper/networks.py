"""tgd's networks as PyTorch modules, with the names that the fetched files have: torchvision's own where they are its."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torchvision.models.resnet import BasicBlock


class LeNet(nn.Module):
    """28x28 grey images, (x/255 - 0.5) * 2; 1,256,080 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5, padding=2)
        self.conv2 = nn.Conv2d(20, 50, 5, padding=2)
        self.fc1 = nn.Linear(7 * 7 * 50, 500)
        self.fc2 = nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class CifarNet(nn.Module):
    """24x24 colour images, standardized one by one; 1,068,298 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 5, padding=2)
        self.conv2 = nn.Conv2d(64, 64, 5, padding=2)
        self.fc1 = nn.Linear(6 * 6 * 64, 384)
        self.fc2 = nn.Linear(384, 192)
        self.fc3 = nn.Linear(192, 10)
        # PyTorch divides alpha by the window, the paper's TensorFlow does not: 0.001/9 over 9 channels.
        self.norm = nn.LocalResponseNorm(9, alpha=0.001, beta=0.75, k=1.0)

    def forward(self, x):
        x = self.norm(F.max_pool2d(F.relu(self.conv1(x)), 3, 2, ceil_mode=True))
        x = F.max_pool2d(self.norm(F.relu(self.conv2(x))), 3, 2, ceil_mode=True)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


class ResNet20(nn.Module):
    """ResNet-20 for CIFAR-10, with projections (option B); 272,474 parameters."""

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        inputs = 16
        for number, filters in enumerate((16, 32, 64), 1):
            stride = 1 if number == 1 else 2
            down = None if number == 1 else nn.Sequential(nn.Conv2d(inputs, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))
            blocks = [BasicBlock(inputs, filters, stride, down)] + [BasicBlock(filters, filters) for _ in range(2)]
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
            inputs = filters
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class Mlp(nn.Module):
    def __init__(self, inputs, classes, hidden=(256, 128)):
        super().__init__()
        sizes = [inputs, *hidden, classes]
        for number in range(1, len(sizes)):
            setattr(self, f"fc{number}", nn.Linear(sizes[number - 1], sizes[number]))
        self.last = len(sizes) - 1

    def forward(self, x):
        x = x.flatten(1)
        for number in range(1, self.last):
            x = F.relu(getattr(self, f"fc{number}")(x))
        return getattr(self, f"fc{self.last}")(x)


class BetaNorm(nn.BatchNorm2d):
    """Batch normalization without gamma, TensorFlow's constants."""

    def __init__(self, channels):
        super().__init__(channels, eps=1e-3, momentum=3e-4)
        del self.weight
        self.register_buffer("weight", torch.ones(channels), persistent=False)


def same(size, kernel, stride):
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def pad_same(x, kernel, stride, value=0.0):
    return F.pad(x, (*same(x.shape[3], kernel, stride), *same(x.shape[2], kernel, stride)), value=value)


class SameConv(nn.Conv2d):
    """TensorFlow's SAME, then the normalization named `norm`, then ReLU."""

    def __init__(self, inputs, outputs, kernel, stride=1, groups=1, norm="bn"):
        super().__init__(inputs, outputs, kernel, stride, groups=groups, bias=False)
        setattr(self, norm, BetaNorm(outputs))
        self.norm = norm

    def forward(self, x):
        x = super().forward(pad_same(x, self.kernel_size[0], self.stride[0]))
        return F.relu(getattr(self, self.norm)(x))


def same_pool(x, kernel, stride):
    return F.max_pool2d(pad_same(x, kernel, stride, float("-inf")), kernel, stride)


class AlexNetTwoColumn(nn.Module):
    def __init__(self, size, classes):
        super().__init__()
        self.conv1 = SameConv(3, 96, 11, 4)
        self.conv2 = SameConv(96, 256, 5, groups=2)
        self.conv3 = SameConv(256, 384, 3)
        self.conv4 = SameConv(384, 384, 3, groups=2)
        self.conv5 = SameConv(384, 256, 3, groups=2)
        side = -(-size // 4)
        for _ in range(3):
            side = (side - 3) // 2 + 1
        self.fc6 = nn.Linear(256 * side * side, 4096)
        self.fc7 = nn.Linear(4096, 4096)
        self.logits = nn.Linear(4096, classes)
        self.lrn = nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2.0)  # PyTorch divides alpha by the window

    def by_column(self, x):
        return torch.cat([self.lrn(column) for column in x.chunk(2, 1)], 1)

    def forward(self, x):
        x = F.max_pool2d(self.by_column(self.conv1(x)), 3, 2)
        x = F.max_pool2d(self.by_column(self.conv2(x)), 3, 2)
        x = F.max_pool2d(self.conv5(self.conv4(self.conv3(x))), 3, 2).flatten(1)
        return self.logits(F.relu(self.fc7(F.relu(self.fc6(x)))))


class Branches(nn.Module):
    def __init__(self, inputs, one, three_reduce, three, five_reduce, five, pool):
        super().__init__()
        conv = lambda *sizes: SameConv(*sizes, norm="BatchNorm")  # noqa: E731
        self.Branch_0 = nn.ModuleDict({"Conv2d_0a_1x1": conv(inputs, one, 1)})
        self.Branch_1 = nn.ModuleDict({"Conv2d_0a_1x1": conv(inputs, three_reduce, 1), "Conv2d_0b_3x3": conv(three_reduce, three, 3)})
        self.Branch_2 = nn.ModuleDict({"Conv2d_0a_1x1": conv(inputs, five_reduce, 1), "Conv2d_0b_3x3": conv(five_reduce, five, 3)})
        self.Branch_3 = nn.ModuleDict({"Conv2d_0b_1x1": conv(inputs, pool, 1)})

    def forward(self, x):
        through = lambda branch, y: [y := layer(y) for layer in branch.values()][-1]  # noqa: E731
        return torch.cat([through(self.Branch_0, x), through(self.Branch_1, x), through(self.Branch_2, x), through(self.Branch_3, same_pool(x, 3, 1))], 1)


class GoogleNetSlim(nn.Module):
    MODULES = {"3b": (192, 64, 96, 128, 16, 32, 32), "3c": (256, 128, 128, 192, 32, 96, 64), "4b": (480, 192, 96, 208, 16, 48, 64),
               "4c": (512, 160, 112, 224, 24, 64, 64), "4d": (512, 128, 128, 256, 24, 64, 64), "4e": (512, 112, 144, 288, 32, 64, 64),
               "4f": (528, 256, 160, 320, 32, 128, 128), "5b": (832, 256, 160, 320, 32, 128, 128), "5c": (832, 384, 192, 384, 48, 128, 128)}

    def __init__(self, classes):
        super().__init__()
        self.Conv2d_1a_7x7 = SameConv(3, 64, 7, 2, norm="BatchNorm")
        self.Conv2d_2b_1x1 = SameConv(64, 64, 1, norm="BatchNorm")
        self.Conv2d_2c_3x3 = SameConv(64, 192, 3, norm="BatchNorm")
        for name, sizes in self.MODULES.items():
            setattr(self, "Mixed_" + name, Branches(*sizes))
        self.logits = nn.ModuleDict({"Conv2d_0c_1x1": nn.Linear(1024, classes)})

    def forward(self, x):
        x = same_pool(self.Conv2d_1a_7x7(x), 3, 2)
        x = same_pool(self.Conv2d_2c_3x3(self.Conv2d_2b_1x1(x)), 3, 2)
        for name in self.MODULES:
            x = getattr(self, "Mixed_" + name)(x)
            if name == "3c":
                x = same_pool(x, 3, 2)
            if name == "4f":
                x = same_pool(x, 2, 2)
        return self.logits["Conv2d_0c_1x1"](x.mean((2, 3)))


def make(model, shape, classes, dropout=False):
    """The network of that name. Without its dropout unless that is asked for: PyTorch does not draw as we do."""
    models = torchvision.models
    network = {
        "lenet": lambda: LeNet(),
        "cifarnet": lambda: CifarNet(),
        "alexnet": lambda: models.alexnet(num_classes=classes),
        "vgg-a": lambda: models.vgg11(num_classes=classes, init_weights=False),
        "googlenet": lambda: models.googlenet(num_classes=classes, aux_logits=True, init_weights=False),
        "resnet-18": lambda: models.resnet18(num_classes=classes),
        "resnet-50": lambda: models.resnet50(num_classes=classes),
        "resnet-20": lambda: ResNet20(classes),
        "mlp": lambda: Mlp(shape[0] * shape[1] * shape[2], classes),
        "alexnet-two-column": lambda: AlexNetTwoColumn(shape[1], classes),
        "googlenet-slim": lambda: GoogleNetSlim(classes),
    }[model]()
    for module in network.modules():
        if isinstance(module, nn.Dropout) and not dropout:
            module.p = 0.0
    return network
