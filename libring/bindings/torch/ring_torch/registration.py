# SPDX-License-Identifier: Apache-2.0
"""Tells torch.distributed of the backend "ring". The first group loads the library itself."""
import atexit
import functools
import os


def register():
    """Called by torch at `import torch`, or at the first use of "ring". Never raises: the program
    that imports torch would get the exception."""
    try:
        import torch.distributed as dist
        if not dist.is_available() or hasattr(dist.Backend, "RING"):
            return
        # DDP takes the memory of its buckets from the backend when this is 0.
        os.environ.setdefault("DDP_DISABLE_COMM_MEM", "0")
        dist.Backend.register_backend("ring", _create, extended_api=True, devices=["cpu"])
    except Exception as error:  # noqa: BLE001
        import warnings
        warnings.warn(f"ring_torch: \"ring\" could not be registered: {error}")


def load():
    """The compiled module, or an ImportError that names both versions of torch."""
    import torch

    from ._built import TORCH
    if _minor(torch.__version__) != _minor(TORCH):
        raise ImportError(f"ring_torch was built for torch {TORCH} and cannot be used with torch "
                          f"{torch.__version__}: install libring-torch anew")
    from . import _C
    _at_exit_stop(_C.stop_completer)
    return _C


def _minor(version):
    return version.split(".")[:2]


@functools.cache
def _at_exit_stop(completer):
    """A thread that completes futures must be gone before the interpreter is."""
    atexit.register(completer)


def _create(options, _process_group_options):
    """c10d's factory. options: store, group_rank, group_size, timeout, group_id."""
    return load().ProcessGroupRing(options.store, options.group_rank, options.group_size,
                                   options.timeout)
