# SPDX-License-Identifier: Apache-2.0
"""The backend "ring" of torch.distributed: collectives of libring for tensors on the CPU.

    import torch.distributed as dist
    dist.init_process_group("ring")

Programs need not import this module for that: torch finds the backend through the package's entry
points. The compiled library is loaded when it is first used.
"""
from .shared_memory import empty_cache, is_shared, memory, memory_stats
from .registration import register

__all__ = ["empty_cache", "is_shared", "memory", "memory_stats", "register"]
register()
