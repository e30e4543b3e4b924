/* SPDX-License-Identifier: Apache-2.0
 * Loading, and what errors mean. */
#include "cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct {
    pthread_once_t once;
    cuda_driver functions;
    bool loaded;
    char why[256];
} library = {.once = PTHREAD_ONCE_INIT};

static bool find(void *handle, const char *name, void *function, bool optional)
{
    void *found = dlsym(handle, name);
    memcpy(function, &found, sizeof found);
    if (found == NULL && !optional)
        (void)text_format(library.why, sizeof library.why,
                          "libcuda.so.1 has no %s: NVIDIA's driver is too old; update it", name);
    return found != NULL || optional;
}

static bool find_all(void *handle, cuda_driver *f)
{
#define ROW(name, member, parameters) find(handle, "cu" #name, &f->member, false) &&
    const bool all = CUDA_FUNCTIONS(ROW) true;
#undef ROW
#define ROW(name, member, parameters) (void)find(handle, "cu" #name, &f->member, true);
    CUDA_OPTIONAL(ROW)
#undef ROW
    return all;
}

static const char *text_of(CUresult result)
{
    const char *text = NULL;
    const CUresult known = library.functions.get_error_string(result, &text);
    return known == CUDA_SUCCESS && text != NULL ? text : "unknown to this driver";
}

static void load(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        (void)text_format(library.why, sizeof library.why, "%s; is NVIDIA's driver installed?",
                          dlerror());
        return;
    }
    if (!find_all(handle, &library.functions))
        return;
    const CUresult result = library.functions.init(0);
    library.loaded = result == CUDA_SUCCESS;
    if (!library.loaded)
        (void)text_format(library.why, sizeof library.why,
                          "CUDA does not start: %s (error %d); see 'nvidia-smi'", text_of(result),
                          result);
}

const cuda_driver *cuda_driver_load(void)
{
    pthread_once(&library.once, load);
    if (library.loaded)
        return &library.functions;
    fail(RING_ERR_UNSUPPORTED, "%s", library.why);
    return NULL;
}

ring_status cuda_check(CUresult result, const char *what)
{
    return result == CUDA_SUCCESS
               ? RING_OK
               : fail(RING_ERR_SYSTEM, "%s: %s (CUDA error %d)", what, text_of(result), result);
}
