# SPDX-License-Identifier: Apache-2.0
"""One rank of compare_torch.py: times training steps of a network under DDP or FSDP2.

Each contender trains its own copy of the network. The contender "silent" has a backend that does
nothing, so it shows the time of a step without communication. All others make the same steps on the
same random samples, so their losses must agree.
"""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

import torch_models
from torch_rank import RANK, RANKS, SPEC, begin, end, in_turn, tell, time_row

IMAGES, TEXTS = 64, 2  # samples of a batch
WIDE, DEEP = 512, 16  # width and layers of the network "deep"; each layer is a bucket of 1 MiB
AGREE = 1e-3  # relative tolerance of losses, because backends may sum in different orders


def deep():
    layers = [part for _ in range(DEEP) for part in (nn.Linear(WIDE, WIDE, bias=False), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(WIDE, 10))


MODELS = {"mlp": torch_models.mlp, "lenet5": torch_models.lenet5, "gpt": torch_models.gpt,
          "deep": deep}


def batch():
    torch.manual_seed(RANK)
    if SPEC["model"] == "gpt":
        shape = TEXTS, torch_models.CONTEXT
        return [torch.randint(torch_models.WORDS, shape) for _ in range(2)]
    x = torch.rand(SPEC["batch"], WIDE) if SPEC["model"] == "deep" else \
        torch.rand(IMAGES, 1, 28, 28)
    return x, torch.randint(10, (len(x),))


def shard(model, group, from_ring):
    mesh = DeviceMesh.from_group(group, "cpu")
    for block in getattr(model, "blocks", []):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if from_ring:
        for part in model.modules():
            if isinstance(part, FSDPModule):
                part.set_allocate_memory_from_process_group_for_comm(True)
    return model


def leave_alone(later, bucket):
    """A communication hook for DDP that sends nothing and keeps the bucket for later. ("fake" needs
    it, too, because DDP cannot use the results of its calls.)"""
    later.append(bucket.buffer())
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def distribute(model, group, contender, later):
    if SPEC["engine"] == "fsdp2":
        return shard(model, group, contender["backend"] == "ring")
    found = DistributedDataParallel(model, process_group=group, bucket_cap_mb=SPEC["bucket_mb"],
                                    gradient_as_bucket_view=SPEC["engine"] == "ddp view")
    if contender["backend"] == "fake" or contender.get("in_turn"):
        found.register_comm_hook(later, leave_alone)
    return found


class Training:
    def __init__(self, contender, group):
        torch.manual_seed(0)
        self.group, self.later, self.in_turn = group, [], contender.get("in_turn")
        self.model = distribute(MODELS[SPEC["model"]](), group, contender, self.later)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)
        self.x, self.y = batch()
        self.loss = None

    def send(self):
        """Reduces the kept buckets after the backward pass; the gradients are views of them."""
        for bucket in self.later:
            dist.all_reduce(bucket.div_(RANKS), group=self.group)

    def step(self):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        if self.in_turn:
            self.send()
        self.later.clear()
        self.optimizer.step()
        self.loss = loss.item()


def check(trainings):
    """Checks that the losses of all contenders that communicate agree."""
    losses = {name: training.loss for name, training in trainings.items() if name != "silent"}
    least, most = min(losses.values()), max(losses.values())
    if not most - least <= AGREE * most:
        raise SystemExit(f"rank {RANK}: the contenders did not train alike: {losses}")


def main():
    groups = begin()
    trainings = {contender["name"]: Training(contender, groups[contender["name"]])
                 for contender in SPEC["contenders"]}
    for training in trainings.values():  # DDP rebuilds its buckets in the second step
        time_row(training.step, 3)
    rounds = in_turn({name: lambda training=training: time_row(training.step, SPEC["steps"])
                      for name, training in trainings.items()}, SPEC["rounds"])
    check(trainings)
    tell({"engine": SPEC["engine"], "model": SPEC["model"], "rounds": rounds})
    del trainings
    end()


main()
