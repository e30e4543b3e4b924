/* SPDX-License-Identifier: Apache-2.0
 * The place whose memory is the host's. Each request is executed at once and cannot fail. */
#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"

static ring_status host_alloc(const nn_place *place, void **out, size_t bytes, const char *what)
{
    (void)place;
    return train_alloc(out, bytes, what);
}

static void host_release(const nn_place *place, void *memory)
{
    (void)place;
    free(memory);
}

static const op_functions *host_functions(const nn_op *op)
{
    return &op->fast;
}

static size_t host_scratch_bytes(const op_use *use, size_t batch)
{
    (void)batch;
    return use->scratch_bytes;
}

static void host_copy(const nn_place *place, void *to, const void *from, size_t bytes)
{
    (void)place;
    memcpy(to, from, bytes);
}

static void host_clear(const nn_place *place, void *at, size_t bytes)
{
    (void)place;
    memset(at, 0, bytes);
}

static void host_add(const nn_place *place, float *to, const float *from, size_t count)
{
    (void)place;
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

static ring_status host_settle(const nn_place *place)
{
    (void)place;
    return RING_OK;
}

const nn_place place_host = {
    .name = "cpu",
    .is_host = true,
    .alloc = host_alloc,
    .release = host_release,
    .functions = host_functions,
    .scratch_bytes = host_scratch_bytes,
    .write = host_copy,
    .read = host_copy,
    .copy = host_copy,
    .clear = host_clear,
    .add = host_add,
    .settle = host_settle,
};
