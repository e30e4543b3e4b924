# SPDX-License-Identifier: Apache-2.0
"""Tensors in the memory that ranks of one host share, where they are reduced in place.

DDP's buckets lie there by themselves, FSDP2's buffers after
set_allocate_memory_from_process_group_for_comm(True). A forked child cannot touch this memory:
let a DataLoader's worker read nothing that lies in it.
"""
from .registration import load


class memory:  # noqa: N801 (a function to its users, as torch.no_grad is)
    """`with ring_torch.memory():` what this thread allocates inside lies in shared memory, as long
    as there is some: a model, its gradients, its batches. Costs no copy and may be nested."""

    def __enter__(self):
        load().enter_memory()

    def __exit__(self, *exception):
        load().leave_memory()


def is_shared(tensor):
    """Whether the tensor lies in shared memory."""
    return load().is_shared(tensor)


def empty_cache():
    """Gives shared memory that no tensor uses back to the system."""
    load().empty_cache()


def memory_stats():
    """A dict: reserved_bytes (taken from the system), used_bytes (in tensors), requests (tensors
    that got shared memory, ever), allocations (those that the system had to be asked for) and
    refusals (tensors that lie in ordinary memory because no shared memory was left)."""
    return load().memory_stats()
