# SPDX-License-Identifier: Apache-2.0
"""The backend "ring" of torch.distributed: collectives of libring for tensors on the CPU.

    import torch.distributed as dist
    dist.init_process_group("ring")

An import of this module is not needed: torch finds the backend by the package's entry points.
"""
from .registration import register

__all__ = ["register"]
register()
