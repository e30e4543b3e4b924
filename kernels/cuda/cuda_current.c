/* SPDX-License-Identifier: Apache-2.0
 * Finds the accelerator of the calling thread for the engine. Each device is opened once per
 * process. A process that has not loaded CUDA by itself does not load it here. */
#include "cuda_device.h"

#include <dlfcn.h>
#include <pthread.h>

enum { MOST_DEVICES = 64 };

static struct {
    pthread_mutex_t lock;
    cuda_device *of[MOST_DEVICES];
} opened = {.lock = PTHREAD_MUTEX_INITIALIZER};

static ring_status open_once(CUdevice ordinal, const accelerator **out)
{
    ring_status status = RING_OK;
    if (ordinal < 0 || ordinal >= MOST_DEVICES)
        return fail(RING_ERR_UNSUPPORTED,
                    "cannot use CUDA device %d: libring supports the devices 0 to %d", ordinal,
                    (int)MOST_DEVICES - 1);
    pthread_mutex_lock(&opened.lock);
    if (opened.of[ordinal] == NULL)
        status = cuda_device_open(ordinal, "", &opened.of[ordinal]);
    if (status == RING_OK)
        *out = &opened.of[ordinal]->base;
    pthread_mutex_unlock(&opened.lock);
    return status;
}

/* In forked children, which cannot use CUDA, get_current() returns an error. */
ring_status accelerator_current(const accelerator **out)
{
    CUcontext context = NULL;
    CUdevice device;
    *out = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) /* the process has not loaded CUDA */
        return RING_OK;
    dlclose(library);
    const cuda_driver *api = cuda_driver_load();
    if (api == NULL)
        return RING_ERR_UNSUPPORTED;
    const CUresult result = api->get_current(&context);
    if (result == CUDA_ERROR_NOT_INITIALIZED)
        return RING_OK;
    RING_TRY(cuda_check(result, "finding CUDA's current context (cuCtxGetCurrent)"));
    if (context == NULL)
        return RING_OK;
    RING_TRY(
        cuda_check(api->get_device(&device), "finding CUDA's current device (cuCtxGetDevice)"));
    return open_once(device, out);
}
