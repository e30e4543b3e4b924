/* SPDX-License-Identifier: Apache-2.0
 *
 * breaker: preloaded, it spoils the float allreduces of one rank on their way to the caller,
 * as BREAK says: "value" flips a bit of the last element, "guard" writes one byte after it,
 * "stale" leaves the output as it was.
 */
#include <dlfcn.h>
#include <ring/ring.h>
#include <stdlib.h>
#include <string.h>

typedef ring_status all_reduce(const void *, void *, size_t, ring_dtype, ring_op, ring_comm *,
                               const ring_call *);

static all_reduce *real_one(void)
{
    union {
        void *object;
        all_reduce *function;
    } found = {dlsym(RTLD_NEXT, "ring_all_reduce")};
    return found.function;
}

__attribute__((visibility("default"))) ring_status ring_all_reduce(const void *src, void *dst,
                                                                   size_t count, ring_dtype dtype,
                                                                   ring_op op, ring_comm *comm,
                                                                   const ring_call *call)
{
    const char *way = getenv("BREAK");
    const size_t bytes = count * ring_dtype_size(dtype);
    if (!way || dtype != RING_FLOAT32 || ring_comm_rank(comm) != 1 || count == 0)
        return real_one()(src, dst, count, dtype, op, comm, call);
    void *copy = malloc(bytes);
    if (!copy)
        return RING_ERR_MEMORY;
    memcpy(copy, dst, bytes);
    const ring_status status = real_one()(src, dst, count, dtype, op, comm, call);
    if (strcmp(way, "value") == 0)
        ((unsigned char *)dst)[bytes - 1] ^= 1;
    if (strcmp(way, "guard") == 0)
        ((unsigned char *)dst)[bytes] ^= 1;
    if (strcmp(way, "stale") == 0)
        memcpy(dst, copy, bytes);
    free(copy);
    return status;
}
