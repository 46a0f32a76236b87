"""The same files through the safetensors and torch packages.
usage: packages.py resave IN OUT      what the package reads from IN, written by the package
       packages.py sequential OUT     the state dict of an nn.Sequential after a training step
       packages.py same A B           loads B into the nn.Sequential and compares it with A to the bit"""
import sys

import safetensors.torch
import torch


def sequential():
    torch.manual_seed(7)
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 5))


what, paths = sys.argv[1], sys.argv[2:]
if what == "resave":
    safetensors.torch.save_file(safetensors.torch.load_file(paths[0]), paths[1], metadata={"format": "pt"})
elif what == "sequential":
    model = sequential()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 1, 4, 4)).square().sum().backward()
        optimizer.step()
    safetensors.torch.save_file(model.state_dict(), paths[0])
elif what == "same":
    model = sequential()
    model.load_state_dict(safetensors.torch.load_file(paths[1]), strict=True)
    expected = safetensors.torch.load_file(paths[0])
    for name, value in model.state_dict().items():
        assert value.dtype == expected[name].dtype and torch.equal(value, expected[name]), name
    print("the same:", *expected)
