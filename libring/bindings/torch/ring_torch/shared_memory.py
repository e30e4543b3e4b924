# SPDX-License-Identifier: Apache-2.0
"""Allocates tensors in memory that the ranks of one host share, where they are reduced in place.

DDP's buckets are allocated there automatically, and FSDP2's buffers after
set_allocate_memory_from_process_group_for_comm(True). A forked child cannot access this memory, so
the workers of a DataLoader must not read tensors in it.
"""
from .registration import load


class memory:  # noqa: N801 (users call it like a function, as torch.no_grad)
    """Within `with ring_torch.memory():`, new tensors of this thread are in shared memory as long
    as any is left: a model, its gradients, its batches. Nothing is copied. May be nested."""

    def __enter__(self):
        load().enter_memory()

    def __exit__(self, *exception):
        load().leave_memory()


def is_shared(tensor):
    """Returns True if the tensor is in shared memory."""
    return load().is_shared(tensor)


def empty_cache():
    """Returns shared memory that no tensor uses to the system."""
    load().empty_cache()


def memory_stats():
    """Returns a dict of reserved_bytes (allocated from the system), used_bytes (in use by tensors),
    requests (number of tensors that have got shared memory so far), allocations (how many of these
    needed new memory from the system) and refusals (number of tensors in ordinary memory because no
    shared memory was left)."""
    return load().memory_stats()
