/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads NVTX's library by its name when the first range begins, because only profiled programs need
 * it. Its name is libnvtx3interop since CUDA 12.9, and was libnvToolsExt before.
 */
#include "nvtx.h"

#include "shared_object.h"

#include <pthread.h>

static struct {
    pthread_once_t once;
    int (*push)(const char *name);
    int (*pop)(void);
} library = {.once = PTHREAD_ONCE_INIT};

static ring_status load_from(const char *file)
{
    int (*push)(const char *), (*pop)(void);
    const object_symbol symbols[] = {{"nvtxRangePushA", &push, false},
                                     {"nvtxRangePop", &pop, false}};
    RING_TRY(shared_object_load(
        &(shared_object){.file = file,
                         .if_absent = "install CUDA's NVTX (cuda-nvtx), or unset RING_NVTX",
                         .if_old = "install another version of NVTX, or unset RING_NVTX",
                         .symbols = symbols,
                         .count = sizeof symbols / sizeof *symbols}));
    library.push = push;
    library.pop = pop;
    return RING_OK;
}

static void load(void)
{
    if (load_from("libnvToolsExt.so.1") != RING_OK && load_from("libnvtx3interop.so.1") != RING_OK)
        log_warn("RING_NVTX=1, but calls are not marked for profilers: %s", fail_text());
}

void nvtx_begin(const char *name)
{
    pthread_once(&library.once, load);
    if (library.push != NULL)
        (void)library.push(name);
}

void nvtx_end(void)
{
    if (library.pop != NULL)
        (void)library.pop();
}
