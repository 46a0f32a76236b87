#!/usr/bin/env python3
"""The training step of bench/cases in PyTorch: same model, initial weights, data and order; timed like bench_step.
*-bf16: under torch.autocast, channels last. --device cuda: the whole data set lies on the GPU, and blocks end when it
has done all that was asked for; --compile: forward and loss under torch.compile.

Alone, or as one of several processes under DDP with gloo: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say so. Rank 0
prints one JSON line. Batches are index expressions on tensors in memory, so no loader is timed.
"""
import argparse
import gzip
import json
import os
import resource
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from torch_models import ConvNet, mlp, resnet50

def teacher_data():
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(4096, 2, generator=generator)
    teacher = torch.randn(2, 2, generator=generator)
    y = (x.double() @ teacher.double()).argmax(1)
    return x, y, x, y


def idx(path, header):
    with gzip.open(path) as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=header)


def mnist_data(directory):
    def images(name):
        return idx(f"{directory}/{name}-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).float().div(255).sub(0.1307).div(0.3081)

    def labels(name):
        return idx(f"{directory}/{name}-labels-idx1-ubyte.gz", 8).long()

    return images("train"), labels("train"), images("t10k")[:2048], labels("t10k")[:2048]


def random_images(count):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(count, 3, 224, 224, generator=generator)
    y = torch.randint(1000, (count,), generator=generator)
    return x, y, x, y


# Model, learning rate, batch, further arguments of SGD; bench/cases has the same.
CASES = {"mlp": (mlp, 0.1, 32, {}), "convnet": (ConvNet, 0.01, 64, {}),
         "resnet50": (resnet50, 0.1, 128, {"momentum": 0.9, "weight_decay": 1e-4})}


class Stepper:
    """Optimizer steps on and on, in DistributedSampler's order with drop_last batches."""

    def __init__(self, model, optimizer, x, y, batch, rank, world, bf16, compiled=False):
        self.bf16, self.optimizer, self.device = bf16, optimizer, x.device
        self.model, self.x, self.y, self.batch, self.rank, self.world = model, x, y, batch, rank, world
        self.loss = torch.compile(self.loss_of) if compiled else self.loss_of
        self.per_epoch = len(x) // (batch * world)
        self.done = 0

    def begin_epoch(self, epoch):
        order = torch.randperm(len(self.x), generator=torch.Generator().manual_seed(epoch))
        self.batches = order[self.rank::self.world].to(self.device).split(self.batch)

    def loss_of(self, x, y):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            return F.cross_entropy(self.model(x), y)

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def run(self, steps):
        for _ in range(steps):
            k = self.done % self.per_epoch
            if k == 0:
                self.begin_epoch(self.done // self.per_epoch)
            rows = self.batches[k]
            self.optimizer.zero_grad()
            x = self.x[rows]
            if self.bf16:
                x = x.contiguous(memory_format=torch.channels_last)
            self.loss(x, self.y[rows]).backward()
            self.optimizer.step()
            self.done += 1


def validation_loss(model, x, y, bf16):
    with torch.no_grad(), torch.autocast(x.device.type, torch.bfloat16, enabled=bf16):
        total = sum(F.cross_entropy(model(a), b, reduction="sum").double() for a, b in zip(x.split(64), y.split(64)))
    return (total / len(x)).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=["mlp", "convnet", "convnet-bf16", "resnet50", "resnet50-bf16"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch", type=int, help="samples per process (default: the case's)")
    parser.add_argument("--samples", type=int, default=512, help="of resnet50's data")
    parser.add_argument("--data", default="datasets/mnist")
    parser.add_argument("--loss-steps", type=int, default=0)
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=20)
    options = parser.parse_args()

    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if world > 1:
        dist.init_process_group("gloo")
    bf16 = options.case.endswith("-bf16")
    case = options.case.removesuffix("-bf16")
    make_model, lr, batch, of_sgd = CASES[case]
    batch = options.batch or batch
    data = {"mlp": teacher_data, "convnet": lambda: mnist_data(options.data), "resnet50": lambda: random_images(options.samples)}
    x, y, val_x, val_y = (tensor.to(options.device) for tensor in data[case]())
    torch.manual_seed(42)
    bare = make_model().to(options.device)
    if bf16:
        bare = bare.to(memory_format=torch.channels_last)
    model = nn.parallel.DistributedDataParallel(bare) if world > 1 else bare
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, **of_sgd)
    stepper = Stepper(model, optimizer, x, y, batch, rank, world, bf16, options.compile)

    result = {"world_size": world, "batch": batch, "threads": torch.get_num_threads(), "torch": torch.__version__,
              "device": options.device, "compiled": options.compile}
    if options.loss_steps:
        stepper.run(options.loss_steps)
        result["loss"] = {"steps": options.loss_steps, "value": validation_loss(bare, val_x, val_y, bf16)}
    stepper.run(options.warmup)
    stepper.wait()
    if world > 1:
        dist.barrier()
    blocks = max(1, min(options.blocks, options.steps))
    in_block = options.steps // blocks
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    us = []
    for _ in range(blocks):
        start = time.perf_counter()
        stepper.run(in_block)
        stepper.wait()
        us.append((time.perf_counter() - start) * 1e6 / in_block)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    us = torch.tensor(us, dtype=torch.float64)
    if world > 1:
        dist.all_reduce(us, op=dist.ReduceOp.MAX)
    us = us.sort().values

    def quantile(fraction):
        return us[round(fraction * (blocks - 1))].item()

    median = quantile(0.5)
    result.update(steps=blocks * in_block,
                  us_per_step={"median": median, "p10": quantile(0.1), "p90": quantile(0.9)},
                  steps_per_second=1e6 / median,
                  samples_per_second=1e6 / median * batch * world,
                  steady_step={"page_faults": faults / (blocks * in_block)})
    if rank == 0:
        print(json.dumps(result), flush=True)
    if world > 1:
        dist.barrier()
        os._exit(0)  # the interpreter's own way out sometimes aborts while gloo's threads still run


if __name__ == "__main__":
    main()
