/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements gradient buckets on top of the public calls. A bucket starts when all parameters of it
 * and of the earlier buckets are ready, so every rank starts the buckets in the same order, even if
 * the gradients become ready in another order.
 */
#include "base.h"

#include <stdlib.h>

typedef struct bucket {
    size_t offset, count; /* elements */
    size_t params;        /* number of parameters */
    size_t missing;       /* number of parameters that are not ready yet */
    ring_work *work;      /* its all_reduce; NULL: not started, or finished */
    bool finished;        /* its all_reduce has ended */
} bucket;

struct ring_buckets {
    char *grads;
    ring_dtype dtype;
    ring_op op;
    ring_comm *comm;
    size_t params, bucket_count;
    size_t started;    /* buckets that have been started in this round */
    ring_status error; /* the first error of this round */
    size_t *bucket_of; /* [params] */
    bool *ready;       /* [params] */
    bucket *buckets;   /* [bucket_count], in starting order: the last parameters first */
};

enum { DEFAULT_BUCKET_BYTES = 1 << 20 };

/* ---- Dividing into buckets -------------------------------------------------------- */

/* Adds up the elements of all parameters. Their bytes must not exceed PTRDIFF_MAX. */
static ring_status add_up(const size_t *counts, size_t params, ring_dtype dtype, size_t *total)
{
    size_t bytes;
    *total = 0;
    for (size_t i = 0; i < params; i++)
        if (__builtin_add_overflow(*total, counts[i], total) ||
            __builtin_mul_overflow(*total, ring_dtype_size(dtype), &bytes) || bytes > PTRDIFF_MAX)
            return fail(RING_ERR_ARGUMENT,
                        "ring_buckets_create: with counts[%zu] = %zu the parameters have more "
                        "elements of %s than any buffer can hold",
                        i, counts[i], ring_dtype_name(dtype));
    return RING_OK;
}

/* Assigns the parameters to buckets, from the last one to the first. A bucket takes parameters
 * until it has at least @p bucket_bytes. @param end  the total number of elements. */
static void cut(ring_buckets *b, const size_t *counts, size_t end, size_t bucket_bytes)
{
    const size_t element = ring_dtype_size(b->dtype);
    bucket *open = NULL;
    for (size_t i = b->params; i-- > 0;) {
        if (open == NULL || open->count * element >= bucket_bytes) {
            open = &b->buckets[b->bucket_count++];
            *open = (bucket){.offset = end};
        }
        end -= counts[i];
        open->offset = end;
        open->count += counts[i];
        open->params++;
        b->bucket_of[i] = b->bucket_count - 1;
    }
}

/* Starts a new round, in which no parameter is ready. */
static void rearm(ring_buckets *b)
{
    for (size_t i = 0; i < b->params; i++)
        b->ready[i] = false;
    for (size_t i = 0; i < b->bucket_count; i++) {
        b->buckets[i].missing = b->buckets[i].params;
        b->buckets[i].work = NULL;
        b->buckets[i].finished = false;
    }
    b->started = 0;
    b->error = RING_OK;
}

ring_status ring_buckets_create(ring_buckets **buckets, void *grads, const size_t *counts,
                                size_t params, ring_dtype dtype, ring_op op, size_t bucket_bytes,
                                ring_comm *comm)
{
    if (buckets == NULL || grads == NULL || counts == NULL || params == 0 || comm == NULL ||
        ring_dtype_size(dtype) == 0 || (unsigned)op >= RING_OP_COUNT ||
        (uintptr_t)grads % ring_dtype_size(dtype) != 0)
        return fail(RING_ERR_ARGUMENT,
                    "ring_buckets_create: buckets, grads, counts and comm must not be NULL, params "
                    "must be at least 1, dtype and op valid, and grads aligned to dtype");
    if (op == RING_PREMUL_SUM)
        return fail(RING_ERR_ARGUMENT, "ring_buckets_create: premul_sum needs a factor for each "
                                       "call; multiply first, then use sum");
    if (!ring_op_serves(op, dtype))
        return fail(RING_ERR_ARGUMENT, "ring_buckets_create: %s is for integers, not for %s",
                    ring_op_name(op), ring_dtype_name(dtype));
    size_t total;
    *buckets = NULL;
    RING_TRY(add_up(counts, params, dtype, &total));
    ring_buckets *b = calloc(1, sizeof *b);
    if (b == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while creating buckets");
    *b = (ring_buckets){.grads = grads, .dtype = dtype, .op = op, .comm = comm, .params = params};
    b->bucket_of = calloc(params, sizeof *b->bucket_of);
    b->ready = calloc(params, sizeof *b->ready);
    b->buckets = calloc(params, sizeof *b->buckets);
    if (b->bucket_of == NULL || b->ready == NULL || b->buckets == NULL) {
        ring_buckets_destroy(b);
        return fail(RING_ERR_MEMORY, "out of memory while creating buckets of %zu parameter%s",
                    params, plural(params));
    }
    cut(b, counts, total, bucket_bytes > 0 ? bucket_bytes : DEFAULT_BUCKET_BYTES);
    rearm(b);
    *buckets = b;
    return RING_OK;
}

void ring_buckets_destroy(ring_buckets *b)
{
    if (b == NULL)
        return;
    for (size_t i = 0; i < b->started; i++)
        if (!b->buckets[i].finished && ring_wait(&b->buckets[i].work) != RING_OK)
            log_debug("a bucket failed with its communicator: %s", fail_text());
    free(b->bucket_of);
    free(b->ready);
    free(b->buckets);
    free(b);
}

/* ---- Reducing --------------------------------------------------------------------- */

static ring_status start_full_buckets(ring_buckets *b)
{
    while (b->started < b->bucket_count && b->buckets[b->started].missing == 0) {
        bucket *full = &b->buckets[b->started];
        void *at = b->grads + full->offset * ring_dtype_size(b->dtype);
        ring_call call = RING_CALL_INIT;
        call.work = &full->work;
        RING_TRY(ring_all_reduce(at, at, full->count, b->dtype, b->op, b->comm, &call));
        b->started++;
    }
    return RING_OK;
}

/* Advances the started buckets without blocking. One ring_test() advances all works of the
 * communicator, so the loop ends at the first bucket that is not finished. */
static ring_status advance_running(ring_buckets *b)
{
    for (size_t i = 0; i < b->started; i++) {
        bucket *running = &b->buckets[i];
        if (running->finished)
            continue;
        int done;
        const ring_status status = ring_test(&running->work, &done);
        running->finished = done != 0;
        RING_TRY(status);
        if (!done)
            return RING_OK;
    }
    return RING_OK;
}

ring_status ring_buckets_ready(ring_buckets *b, size_t index)
{
    if (b == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_buckets_ready: buckets is NULL");
    if (index >= b->params)
        return fail(RING_ERR_ARGUMENT,
                    "ring_buckets_ready: index is %zu; it must be less than params, %zu", index,
                    b->params);
    if (b->ready[index])
        return fail(RING_ERR_USAGE, "ring_buckets_ready: parameter %zu was already marked as ready",
                    index);
    b->ready[index] = true;
    b->buckets[b->bucket_of[index]].missing--;
    if (b->error == RING_OK)
        b->error = start_full_buckets(b);
    if (b->error == RING_OK)
        b->error = advance_running(b);
    return b->error;
}

ring_status ring_buckets_wait(ring_buckets *b)
{
    if (b == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_buckets_wait: buckets is NULL");
    ring_status status = b->error;
    for (size_t i = 0; i < b->params && status == RING_OK; i++)
        if (!b->ready[i])
            status = fail(RING_ERR_USAGE,
                          "ring_buckets_wait: parameter %zu was not marked as ready", i);
    for (size_t i = 0; i < b->started; i++) {
        bucket *running = &b->buckets[i];
        if (running->finished)
            continue;
        const ring_status result = ring_wait(&running->work);
        if (status == RING_OK)
            status = result;
    }
    rearm(b);
    return status;
}
