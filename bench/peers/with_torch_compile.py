"""PyTorch on the CPU through `torch.compile`; the functions are those of eager PyTorch."""

import torch

from peers import with_torch


def prepare(workload, arrays):
    torch._dynamo.reset()
    return with_torch.prepare(workload, arrays, lambda function: torch.compile(function, dynamic=False))
