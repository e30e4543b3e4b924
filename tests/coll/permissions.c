/* SPDX-License-Identifier: Apache-2.0
 * Wraps the functions of libring that create, register and destroy (the linker's --wrap), for
 * FAKE_CUDA_R1 of the double of NVIDIA's driver: calls of the driver that may wait are permitted in
 * them alone. */
#include <ring/ring.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void (*set)(bool permitted);

static void find(void)
{
    void *library = getenv("FAKE_CUDA_R1") != NULL ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
    void *found = library != NULL ? dlsym(library, "fake_cuda_permit") : NULL;
    memcpy(&set, &found, sizeof found);
}

static void permit(bool permitted)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    if (set != NULL)
        set(permitted);
}

/* WRAP(function, parameters, arguments) */
#define WRAP(function, parameters, arguments) \
    ring_status __real_##function parameters; \
    ring_status __wrap_##function parameters; \
    ring_status __wrap_##function parameters \
    { \
        permit(true); \
        const ring_status status = __real_##function arguments; \
        permit(false); \
        return status; \
    }
#define WRAP_VOID(function, parameters, arguments) \
    void __real_##function parameters; \
    void __wrap_##function parameters; \
    void __wrap_##function parameters \
    { \
        permit(true); \
        __real_##function arguments; \
        permit(false); \
    }

WRAP(ring_comm_init, (ring_comm * *out, int size, const ring_unique_id *id, int rank),
     (out, size, id, rank))
WRAP(ring_comm_init_config,
     (ring_comm * *out, int size, const ring_unique_id *id, int rank, const ring_config *config),
     (out, size, id, rank, config))
WRAP(ring_comm_init_env, (ring_comm * *out), (out))
WRAP(ring_comm_split, (ring_comm * parent, int colour, int key, ring_comm **out),
     (parent, colour, key, out))
WRAP(ring_comm_split_config,
     (ring_comm * parent, int colour, int key, const ring_config *config, ring_comm **out),
     (parent, colour, key, config, out))
WRAP(ring_comm_dup, (ring_comm * parent, ring_comm **out), (parent, out))
WRAP(ring_comm_create, (ring_comm * parent, const int *ranks, int count, int tag, ring_comm **out),
     (parent, ranks, count, tag, out))
WRAP(ring_comm_exclude, (ring_comm * comm, const int *ranks, int count, ring_comm **out),
     (comm, ranks, count, out))
WRAP(ring_comm_exclude_abort, (ring_comm * comm, const int *ranks, int count, ring_comm **out),
     (comm, ranks, count, out))
WRAP(ring_comm_shrink, (ring_comm * broken, ring_comm **out), (broken, out))
WRAP_VOID(ring_comm_destroy, (ring_comm * comm), (comm))
WRAP(ring_mem_alloc, (void **out, size_t bytes), (out, bytes))
WRAP(ring_mem_free, (void *memory), (memory))
WRAP(ring_mem_register, (void *memory, size_t bytes), (memory, bytes))
WRAP(ring_mem_deregister, (void *memory), (memory))
