/* SPDX-License-Identifier: Apache-2.0
 * Lets several processes share devices (FAKE_CUDA_SHARED). Each of these processes has a GPU
 * process of its own, which locks a byte of one file for each block that it runs, so that the
 * blocks of a process that is killed no longer count. Under MPS the blocks of all processes share
 * the places of a device. Without MPS only one process has blocks there at a time, until all of
 * them have ended. */
#include "gpu.h"

#include <fcntl.h>
#include <stdlib.h>

enum { MOST_PLACES = 256 };

/* Of the GPU process, guarded by gpu_lock(). A lock belongs to a description of the file. */
static struct {
    int files[MOST_PLACES]; /* descriptors plus 1; 0: not opened; the first `held` have locks */
    int held;
} devices[MOST_DEVICES];

bool places_are_shared(void)
{
    return getenv("FAKE_CUDA_SHARED") != NULL;
}

static bool has_mps(void)
{
    return device_attribute(CU_DEVICE_ATTRIBUTE_MPS_ENABLED) != 0;
}

static bool lock(int *file, int kind, int start, int bytes)
{
    struct flock f = {.l_type = (short)kind, .l_start = start, .l_len = bytes};
    if (*file == 0)
        *file = 1 + open(getenv("FAKE_CUDA_SHARED"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*file == 0 || gpu_is.blocks > MOST_PLACES)
        misuse("FAKE_CUDA_SHARED is not a file, or a device has more than 256 blocks");
    return fcntl(*file - 1, F_OFD_SETLK, &f) == 0;
}

static bool take_one(int device)
{
    const int held = devices[device].held, first = device * MOST_PLACES;
    bool taken = !has_mps() && held > 0;
    if (!has_mps() && held == 0)
        taken = lock(&devices[device].files[0], F_WRLCK, first, MOST_PLACES);
    for (int i = 0; has_mps() && !taken && i < gpu_is.blocks; i++)
        taken = lock(&devices[device].files[held], F_WRLCK, first + i, 1);
    devices[device].held += taken;
    return taken;
}

bool places_take(int device, unsigned count)
{
    for (unsigned taken = 0; places_are_shared() && taken < count; taken++)
        if (!take_one(device)) {
            while (taken-- > 0)
                places_give(device);
            return false;
        }
    return true;
}

void places_give(int device)
{
    if (!places_are_shared())
        return;
    const int held = --devices[device].held;
    if (has_mps() || held == 0)
        (void)lock(&devices[device].files[held], F_UNLCK, 0, 0);
}
