/* SPDX-License-Identifier: Apache-2.0
 * Enqueues folds on a GPU, all in one stream of libring's, so they are complete in the order in
 * which they were requested. Each has a number, which the stream writes to a word of pinned memory
 * after the kernel. reap() reads the word, copies results to the host's memory and closes tickets.
 * So a fold takes two calls into the driver and no thread of CUDA's.
 *
 * The kernel cannot reach the host's memory. Operands there are copied through a ring of pinned
 * memory, which is allocated when the GPU is opened: allocating it later could wait for streams. */
#include "cuda_folds.h"

#include "fold_way.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    STAGING_BYTES = 32 << 20,  /* of the ring of pinned memory                          */
    STAGED_BYTES = 8 << 20,    /* most bytes of host operands of one fold               */
    STAGING_ALIGN = 64,        /* operands keep their offset in a cache line            */
    FOLDS_MOST = 64,           /* folds under way                                       */
    WORD_BYTES = STAGING_ALIGN /* the word has a cache line of its own, before the ring */
};

/* A result in host memory, which is copied from pinned memory after the kernel. */
typedef struct host_result {
    void *to;
    const void *from;
    size_t bytes;
} host_result;

/* A fold under way. */
typedef struct fold_job {
    ticket *over;    /* NULL: a later fold's ticket covers this one */
    size_t ring_end; /* bytes of the ring that were ever used, with those of this fold */
    int result_count;
    host_result results[KERNEL_MAX_OUTPUTS];
} fold_job;

/* Job number n is at jobs[n mod FOLDS_MOST]. Both counters of the ring only grow. */
struct cuda_folds {
    pthread_mutex_t lock;
    uint32_t asked, reaped; /* numbers of the latest fold that was enqueued, and reaped */
    size_t used, freed;     /* bytes of the ring: ever allocated, and free again        */
    _Atomic uint32_t *done; /* the latest fold that is complete; in pinned memory       */
    CUdeviceptr done_there; /* its address for the GPU                                  */
    char *ring;             /* [STAGING_BYTES] */
    fold_job jobs[FOLDS_MOST];
};

/* ---- Ends --------------------------------------------------------------------------------- */

/* Ends the folds that are complete. The caller holds the lock. */
static void reap_jobs(struct cuda_folds *f)
{
    const uint32_t done = atomic_load_explicit(f->done, memory_order_acquire);
    while (f->reaped != f->asked && (int32_t)(done - f->reaped) > 0) {
        const fold_job *j = &f->jobs[++f->reaped % FOLDS_MOST];
        for (int i = 0; i < j->result_count; i++)
            memcpy(j->results[i].to, j->results[i].from, j->results[i].bytes);
        f->freed = j->ring_end;
        if (j->over != NULL)
            ticket_close(j->over, RING_OK);
    }
}

/* If another thread has the lock, it is enqueueing or reaping, and the next call finds the rest. */
static void cuda_reap(const accelerator *a)
{
    struct cuda_folds *f = cuda_device_of(a)->state;
    if (pthread_mutex_trylock(&f->lock) != 0)
        return;
    reap_jobs(f);
    pthread_mutex_unlock(&f->lock);
}

/* After an error of the GPU nothing runs any more, so the tickets of its folds stay open, and are
 * forgotten. */
static void cuda_settle(const accelerator *a)
{
    struct cuda_folds *f = cuda_device_of(a)->state;
    pthread_mutex_lock(&f->lock);
    for (const uint32_t last = f->asked; (int32_t)(last - f->reaped) > 0;) {
        reap_jobs(f);
        if (f->reaped != f->asked && a->health(a) != RING_OK) {
            f->reaped = f->asked;
            f->freed = f->used;
        }
        pthread_mutex_unlock(&f->lock);
        sched_yield();
        pthread_mutex_lock(&f->lock);
    }
    pthread_mutex_unlock(&f->lock);
}

/* ---- The ring of pinned memory ------------------------------------------------------------ */

static size_t bytes_of(const kernel_operand *o, size_t count, ring_dtype dtype)
{
    return count * (o->accumulator ? kernel_acc_size(dtype) : ring_dtype_size(dtype));
}

/* @return the ring's bytes that a host operand needs, wherever in a cache line it begins. */
static size_t staged_bytes(size_t bytes)
{
    return (bytes + (size_t)2 * STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
}

static size_t staged_in_all(const kernel_operand *operands, uint32_t operand_count, size_t count,
                            ring_dtype dtype)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < operand_count; i++)
        bytes += operands[i].on_device ? 0 : staged_bytes(bytes_of(&operands[i], count, dtype));
    return bytes;
}

/* Allocates consecutive bytes of the ring for a fold, and its job. Waits for earlier folds if there
 * is no room; these need nothing but the GPU. The caller holds the lock.
 * @param[out] at  the bytes. */
static ring_status make_room(const cuda_device *c, size_t bytes, char **at)
{
    struct cuda_folds *f = c->state;
    if (bytes > STAGING_BYTES)
        return fail(RING_ERR_INTERNAL, "a fold on a GPU has %zu bytes of host operands", bytes);
    for (;;) {
        reap_jobs(f);
        if (f->asked == f->reaped)
            f->used = f->freed = 0;
        const size_t left = STAGING_BYTES - f->used % STAGING_BYTES; /* up to the ring's end */
        const size_t start = f->used + (bytes > left ? left : 0);
        if (f->asked - f->reaped < FOLDS_MOST && start + bytes - f->freed <= STAGING_BYTES) {
            *at = f->ring + start % STAGING_BYTES;
            f->used = start + bytes;
            return RING_OK;
        }
        RING_TRY(c->base.health(&c->base));
        cpu_pause();
    }
}

/* @return the place in the ring for an operand, at the operand's offset in a cache line, so that
 * the kernel can use wide accesses. @param[in,out] at  the rest of the fold's bytes. */
static char *place_for(char **at, const kernel_operand *o, size_t bytes)
{
    char *place = *at + (uintptr_t)o->data % STAGING_ALIGN;
    *at += staged_bytes(bytes);
    return place;
}

/* ---- Folds -------------------------------------------------------------------------------- */

static void bind_inputs(cuda_fold_args *args, const kernel_operand *ins, ring_dtype dtype,
                        char **at)
{
    for (uint32_t i = 0; i < args->in_count; i++) {
        args->ins[i] = ins[i].data;
        args->ins_wide |= (uint64_t)ins[i].accumulator << i;
        if (ins[i].on_device)
            continue;
        const size_t bytes = bytes_of(&ins[i], args->count, dtype);
        args->ins[i] = memcpy(place_for(at, &ins[i], bytes), ins[i].data, bytes);
    }
}

static void bind_outputs(fold_job *j, cuda_fold_args *args, const kernel_operand *outs,
                         ring_dtype dtype, char **at)
{
    for (uint32_t i = 0; i < args->out_count; i++) {
        args->outs[i] = outs[i].data;
        args->outs_wide |= (uint64_t)outs[i].accumulator << i;
        if (outs[i].on_device)
            continue;
        const size_t bytes = bytes_of(&outs[i], args->count, dtype);
        args->outs[i] = place_for(at, &outs[i], bytes);
        j->results[j->result_count++] = (host_result){.to = outs[i].data,
                                                      .from = args->outs[i],
                                                      .bytes = bytes};
    }
}

/* @return true if fold_few_NAME serves the fold. @param[out] few  its arguments. */
static bool is_few(const cuda_fold_args *args, ring_dtype dtype, cuda_fold_few_args *few)
{
    const fold_sizes sizes = {(unsigned)ring_dtype_size(dtype), (unsigned)kernel_acc_size(dtype)};
    const bool is_float = ring_op_serves(RING_PREMUL_SUM, dtype) != 0;
    const bool adds = args->op == RING_SUM || args->op == RING_AVG || args->op == RING_PREMUL_SUM;
    const bool is_logical = args->op >= RING_LAND && args->op <= RING_LXOR;
    if (args->in_count > 2 || args->out_count > 2 ||
        (args->divisor != 0 && (args->in_count == 1 || !is_float || !adds)) ||
        (args->in_count == 1 && is_logical))
        return false;
    const fold_way way = fold_find_way(args, sizes);
    *few = (cuda_fold_few_args){.ins = {args->ins[0], args->ins[1]},
                                .outs = {args->outs[0], args->outs[1]},
                                .count = args->count,
                                .lead = way.lead,
                                .ins_wide = (uint32_t)args->ins_wide,
                                .outs_wide = (uint32_t)args->outs_wide,
                                .in_count = args->in_count,
                                .out_count = args->out_count,
                                .op = args->op,
                                .divisor = args->divisor};
    return way.access == FOLD_VECTORS;
}

static ring_status launch(const cuda_device *c, uint32_t number, cuda_fold_args *args,
                          ring_dtype dtype)
{
    const cuda_driver *api = cuda_driver_load();
    cuda_fold_few_args few;
    const bool is_small = is_few(args, dtype, &few);
    const CUfunction kernel = is_small ? c->few[dtype] : c->folds[dtype];
    void *parameters[] = {is_small ? (void *)&few : args};
    const uint64_t tiles = cuda_tiles(args->count, 16 / (unsigned)ring_dtype_size(dtype),
                                      CUDA_BLOCK);
    RING_TRY(cuda_check(api->launch(kernel, (unsigned)tiles, 1, 1, CUDA_BLOCK, 1, 1, 0, c->stream,
                                    parameters, NULL),
                        "starting a fold (cuLaunchKernel)"));
    const CUresult result = api->stream_write_value(c->stream, c->state->done_there, number, 0);
    while (result != CUDA_SUCCESS && api->stream_query(c->stream) == CUDA_ERROR_NOT_READY)
        cpu_pause(); /* the kernel uses the fold's memory */
    return cuda_check(result, "marking the end of a fold (cuStreamWriteValue32)");
}

/* The caller holds the lock and has entered the GPU's context. */
static ring_status enqueue(const cuda_device *c, const kernel_operand *outs,
                           const kernel_operand *ins, cuda_fold_args *args, ring_dtype dtype,
                           ticket *over)
{
    struct cuda_folds *f = c->state;
    char *at = NULL;
    RING_TRY(make_room(c,
                       staged_in_all(ins, args->in_count, args->count, dtype) +
                           staged_in_all(outs, args->out_count, args->count, dtype),
                       &at));
    const uint32_t number = f->asked + 1;
    fold_job *j = &f->jobs[number % FOLDS_MOST];
    j->over = over;
    j->ring_end = f->used;
    j->result_count = 0;
    bind_inputs(args, ins, dtype, &at);
    bind_outputs(j, args, outs, dtype, &at);
    RING_TRY(launch(c, number, args, dtype));
    f->asked = number;
    return RING_OK;
}

static ring_status cuda_fold(const accelerator *a, const kernel_operand *outs, int out_count,
                             const kernel_operand *ins, int in_count, size_t count,
                             ring_dtype dtype, ring_op op, int divisor, ticket *over)
{
    const cuda_device *c = cuda_device_of(a);
    cuda_fold_args args = {.count = count,
                           .in_count = (uint32_t)in_count,
                           .out_count = (uint32_t)out_count,
                           .op = (int32_t)op,
                           .divisor = divisor};
    if (over != NULL)
        ticket_open(over);
    RING_TRY(cuda_enter(c));
    pthread_mutex_lock(&c->state->lock);
    const ring_status status = enqueue(c, outs, ins, &args, dtype, over);
    pthread_mutex_unlock(&c->state->lock);
    cuda_leave();
    return status;
}

/* ---- Opening ------------------------------------------------------------------------------ */

ring_status cuda_folds_open(cuda_device *c)
{
    void *pinned;
    struct cuda_folds *f = c->state = calloc(1, sizeof *c->state);
    if (f == NULL)
        return fail(RING_ERR_MEMORY, "opening a GPU");
    pthread_mutex_init(&f->lock, NULL);
    RING_TRY(cuda_pin(WORD_BYTES + STAGING_BYTES, &pinned, &f->done_there));
    f->done = pinned;
    f->ring = (char *)pinned + WORD_BYTES;
    atomic_init(f->done, 0);
    c->base.fold = cuda_fold;
    c->base.reap = cuda_reap;
    c->base.settle = cuda_settle;
    c->base.staging = STAGED_BYTES;
    return RING_OK;
}

void cuda_folds_close(cuda_device *c)
{
    struct cuda_folds *f = c->state;
    if (f == NULL)
        return;
    if (f->done != NULL)
        (void)cuda_driver_load()->host_free((void *)f->done);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
