/* SPDX-License-Identifier: Apache-2.0
 * libucp at run time: one build serves machines with and without it. */
#include "ucx.h"

#include <dlfcn.h>

ucx_functions ucx;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static void *library;

typedef struct ucx_symbol {
    const char *name;
    void **at;
} ucx_symbol;

static bool resolve(void *from, char *why, size_t size)
{
    const ucx_symbol symbols[] = {
#define X(name) {#name, (void **)(void *)&ucx.name},
        UCX_FUNCTIONS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].at = dlsym(from, symbols[i].name);
        if (*symbols[i].at == NULL) {
            (void)text_format(why, size, "libucp.so.0 has no %s; UCX 1.13 or later is needed",
                              symbols[i].name);
            return false;
        }
    }
    return true;
}

bool ucx_load(char *why, size_t size)
{
    pthread_mutex_lock(&loading);
    if (library == NULL) {
        void *opened = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
        if (opened == NULL)
            (void)text_format(why, size, "%s; install libucx0", dlerror());
        else if (resolve(opened, why, size))
            library = opened;
    }
    const bool loaded = library != NULL;
    pthread_mutex_unlock(&loading);
    return loaded;
}
