/* SPDX-License-Identifier: Apache-2.0
 * Loads libucp at run time, so that one build works on machines with and without it. */
#include "ucx.h"

#include "shared_object.h"

ucx_functions ucx;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;

static ring_status open_library(void)
{
    const object_symbol symbols[] = {
#define X(name) {#name, &ucx.name, false},
        UCX_FUNCTIONS(X)
#undef X
    };
    return shared_object_load(&(shared_object){.file = "libucp.so.0",
                                               .if_absent = "install the package libucx0",
                                               .if_old = "UCX 1.13 or later is needed",
                                               .symbols = symbols,
                                               .count = sizeof symbols / sizeof *symbols});
}

bool ucx_load(char *why, size_t size)
{
    pthread_mutex_lock(&loading);
    if (!loaded)
        loaded = open_library() == RING_OK;
    const bool is_loaded = loaded;
    pthread_mutex_unlock(&loading);
    if (!is_loaded)
        (void)text_format(why, size, "%s", fail_text());
    return is_loaded;
}
