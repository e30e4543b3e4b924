# SPDX-License-Identifier: Apache-2.0
"""Registers the backend "ring" with torch.distributed. The compiled library is loaded later, when
the first group is created."""
import atexit
import functools
import os


def register():
    """Registers the backend. torch calls it at `import torch` or at the first use of "ring". It
    never raises an exception, because that would make the program's `import torch` fail."""
    try:
        import torch.distributed as dist
        if not dist.is_available() or hasattr(dist.Backend, "RING"):
            return
        # If this is 0, DDP allocates its buckets with the backend.
        os.environ.setdefault("DDP_DISABLE_COMM_MEM", "0")
        dist.Backend.register_backend("ring", _create, extended_api=True, devices=["cpu"])
    except Exception as error:  # noqa: BLE001
        import warnings
        warnings.warn(f"ring_torch: cannot register the backend \"ring\": {error}")


def load():
    """Returns the compiled module. Raises an ImportError that names both versions if it was built
    for another minor version of torch."""
    import torch

    from ._built import TORCH
    if _minor(torch.__version__) != _minor(TORCH):
        raise ImportError(f"ring_torch was built for torch {TORCH} and cannot be used with torch "
                          f"{torch.__version__}: install libring-torch again")
    from . import _C
    _at_exit_stop(_C.stop_completer)
    return _C


def _minor(version):
    return version.split(".")[:2]


@functools.cache
def _at_exit_stop(completer):
    """Makes the thread that completes futures end before the interpreter does."""
    atexit.register(completer)


def _create(options, _process_group_options):
    """Creates the backend of a group; c10d calls it. The options have the members store,
    group_rank, group_size, timeout and group_id."""
    return load().ProcessGroupRing(options.store, options.group_rank, options.group_size,
                                   options.timeout)
