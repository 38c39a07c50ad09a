"""tgd's LeNet and CifarNet as PyTorch modules: names and layouts are those of the fetched safetensors files."""

import torch.nn as nn
import torch.nn.functional as F


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
