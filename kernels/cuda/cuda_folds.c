/* SPDX-License-Identifier: Apache-2.0
 * Enqueues folds on a GPU. Operands in host memory that CUDA does not know are copied to pinned
 * memory, which the kernel reads and writes. After the kernel, CUDA calls a function of the host
 * that copies such results back and closes the fold's ticket. */
#include "cuda_folds.h"

#include "kernel_args.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A result in host memory, which is copied from pinned memory after the kernel. */
typedef struct host_result {
    void *to;
    const void *from;
    size_t bytes;
} host_result;

/* A fold from its request to its end. */
typedef struct fold_job {
    struct fold_job *next; /* in the list of idle jobs */
    struct cuda_folds *of;
    ticket *over;
    char *pinned; /* [capacity]; NULL until it is needed */
    size_t capacity, used;
    int result_count;
    host_result results[KERNEL_MAX_OUTPUTS];
} fold_job;

/* CUDA frees pinned memory only when all streams are idle, and users' streams wait for folds. So
 * pinned memory that became too small is kept, in a list that is linked through its first words. */
struct cuda_folds {
    pthread_mutex_t lock;
    fold_job *idle;
    void *outgrown;
};

/* ---- Jobs --------------------------------------------------------------------------------- */

static fold_job *take_job(struct cuda_folds *folds)
{
    pthread_mutex_lock(&folds->lock);
    fold_job *j = folds->idle;
    if (j != NULL)
        folds->idle = j->next;
    pthread_mutex_unlock(&folds->lock);
    if (j == NULL)
        j = calloc(1, sizeof *j);
    if (j != NULL) {
        j->of = folds;
        j->used = 0;
        j->result_count = 0;
    }
    return j;
}

static void give_job_back(fold_job *j)
{
    pthread_mutex_lock(&j->of->lock);
    j->next = j->of->idle;
    j->of->idle = j;
    pthread_mutex_unlock(&j->of->lock);
}

/* CUDA calls this after the kernel. It must not call any function of CUDA. */
static void end_job(void *arg)
{
    fold_job *j = arg;
    ticket *over = j->over;
    for (int i = 0; i < j->result_count; i++)
        memcpy(j->results[i].to, j->results[i].from, j->results[i].bytes);
    give_job_back(j);
    if (over != NULL)
        ticket_close(over, RING_OK);
    ticket_wake_all();
}

/* ---- Operands of the host ---------------------------------------------------------------------
 */

static size_t bytes_of(const kernel_operand *o, size_t count, ring_dtype dtype)
{
    return count * (o->accumulator ? kernel_acc_size(dtype) : ring_dtype_size(dtype));
}

/* @param[out] reached  whether the GPU can access the memory: its own, or host memory known to
 * CUDA. */
static ring_status ask_reached(const cuda_driver *api, const void *at, bool *reached)
{
    unsigned type = 0;
    const CUresult result = api->pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                       (uintptr_t)at);
    *reached = result == CUDA_SUCCESS && type != 0;
    return result == CUDA_ERROR_INVALID_VALUE /* returned for memory that CUDA does not know */
               ? RING_OK
               : cuda_check(result, "finding the owner of memory (cuPointerGetAttribute)");
}

enum { PINNED_ALIGN = 64 };

/* @return the pinned bytes that an operand needs, wherever in a cache line it begins. */
static size_t pinned_bytes(size_t bytes)
{
    return (bytes + (size_t)2 * PINNED_ALIGN - 1) / PINNED_ALIGN * PINNED_ALIGN;
}

static void keep_outgrown(struct cuda_folds *folds, void *pinned)
{
    pthread_mutex_lock(&folds->lock);
    *(void **)pinned = folds->outgrown;
    folds->outgrown = pinned;
    pthread_mutex_unlock(&folds->lock);
}

/* Grows the job's pinned memory, at least to twice its size. So all memory that was outgrown is no
 * larger than the memory in use. */
static ring_status make_room(fold_job *j, size_t bytes)
{
    void *pinned;
    if (bytes <= j->capacity)
        return RING_OK;
    bytes = bytes < 2 * j->capacity ? 2 * j->capacity : bytes;
    RING_TRY(cuda_pin(bytes, &pinned, NULL));
    if (j->pinned != NULL)
        keep_outgrown(j->of, j->pinned);
    j->pinned = pinned;
    j->capacity = bytes;
    return RING_OK;
}

/* @return a place for an operand. It has the operand's offset in a cache line, so that the kernel
 * can use wide accesses. */
static char *place_for(fold_job *j, const kernel_operand *o, size_t bytes)
{
    char *at = j->pinned + j->used + (uintptr_t)o->data % PINNED_ALIGN;
    j->used += pinned_bytes(bytes);
    return at;
}

/* ---- Folds --------------------------------------------------------------------------------------
 */

static void bind_inputs(fold_job *j, cuda_fold_args *args, const kernel_operand *ins,
                        uint64_t unreached, ring_dtype dtype)
{
    for (uint32_t i = 0; i < args->in_count; i++) {
        const size_t bytes = bytes_of(&ins[i], args->count, dtype);
        args->ins[i] = ins[i].data;
        args->ins_wide |= (uint64_t)ins[i].accumulator << i;
        if ((unreached >> i & 1) == 0)
            continue;
        char *at = place_for(j, &ins[i], bytes);
        memcpy(at, ins[i].data, bytes);
        args->ins[i] = at;
    }
}

static void bind_outputs(fold_job *j, cuda_fold_args *args, const kernel_operand *outs,
                         uint64_t unreached, ring_dtype dtype)
{
    for (uint32_t i = 0; i < args->out_count; i++) {
        const size_t bytes = bytes_of(&outs[i], args->count, dtype);
        args->outs[i] = outs[i].data;
        args->outs_wide |= (uint64_t)outs[i].accumulator << i;
        if ((unreached >> i & 1) == 0)
            continue;
        args->outs[i] = place_for(j, &outs[i], bytes);
        j->results[j->result_count++] = (host_result){.to = outs[i].data,
                                                      .from = args->outs[i],
                                                      .bytes = bytes};
    }
}

/* @param[out] found  a bit for each operand that the GPU cannot access.
 * @param[in,out] room  grows by the pinned bytes that these operands need. */
static ring_status find_unreached(const cuda_driver *api, const kernel_operand *operands,
                                  uint32_t count, size_t elements, ring_dtype dtype,
                                  uint64_t *found, size_t *room)
{
    *found = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool reached;
        RING_TRY(ask_reached(api, operands[i].data, &reached));
        *found |= (uint64_t)!reached << i;
        *room += reached ? 0 : pinned_bytes(bytes_of(&operands[i], elements, dtype));
    }
    return RING_OK;
}

static ring_status launch(const cuda_device *c, fold_job *j, cuda_fold_args *args, ring_dtype dtype)
{
    const cuda_driver *api = cuda_driver_load();
    void *parameters[] = {args};
    const uint64_t wanted = (args->count + CUDA_BLOCK - 1) / CUDA_BLOCK;
    const unsigned blocks = wanted < c->blocks ? (unsigned)wanted : c->blocks;
    RING_TRY(cuda_check(api->launch(c->folds[dtype], blocks, 1, 1, CUDA_BLOCK, 1, 1, 0, c->stream,
                                    parameters, NULL),
                        "starting a fold (cuLaunchKernel)"));
    const CUresult result = api->launch_host(c->stream, end_job, j);
    if (result != CUDA_SUCCESS)
        (void)api->stream_synchronize(c->stream); /* the kernel uses the job's memory */
    return cuda_check(result, "enqueueing the end of a fold (cuLaunchHostFunc)");
}

static ring_status fold_inside(const cuda_device *c, fold_job *j, const kernel_operand *outs,
                               const kernel_operand *ins, cuda_fold_args *args, ring_dtype dtype)
{
    const cuda_driver *api = cuda_driver_load();
    size_t room = 0;
    uint64_t ins_out, outs_out;
    RING_TRY(find_unreached(api, ins, args->in_count, args->count, dtype, &ins_out, &room));
    RING_TRY(find_unreached(api, outs, args->out_count, args->count, dtype, &outs_out, &room));
    RING_TRY(make_room(j, room));
    bind_inputs(j, args, ins, ins_out, dtype);
    bind_outputs(j, args, outs, outs_out, dtype);
    return launch(c, j, args, dtype);
}

static ring_status cuda_fold(const accelerator *a, const kernel_operand *outs, int out_count,
                             const kernel_operand *ins, int in_count, size_t count,
                             ring_dtype dtype, ring_op op, int divisor, ticket *over)
{
    const cuda_device *c = cuda_device_of(a);
    fold_job *j = take_job(c->state);
    if (j == NULL)
        return fail(RING_ERR_MEMORY, "enqueueing a fold on a GPU");
    cuda_fold_args args = {.count = count,
                           .in_count = (uint32_t)in_count,
                           .out_count = (uint32_t)out_count,
                           .op = (int32_t)op,
                           .divisor = divisor};
    j->over = over;
    if (over != NULL)
        ticket_open(over);
    ring_status status = cuda_enter(c);
    if (status == RING_OK) {
        status = fold_inside(c, j, outs, ins, &args, dtype);
        cuda_leave();
    }
    if (status != RING_OK)
        give_job_back(j);
    return status;
}

/* Returns soon after an error of the GPU too, because nothing runs then. */
static void cuda_settle(const accelerator *a)
{
    const cuda_device *c = cuda_device_of(a);
    if (cuda_enter(c) != RING_OK)
        return;
    (void)cuda_driver_load()->stream_synchronize(c->stream);
    cuda_leave();
}

ring_status cuda_folds_open(cuda_device *c)
{
    c->state = calloc(1, sizeof *c->state);
    if (c->state == NULL)
        return fail(RING_ERR_MEMORY, "opening a GPU");
    pthread_mutex_init(&c->state->lock, NULL);
    c->base.fold = cuda_fold;
    c->base.settle = cuda_settle;
    return RING_OK;
}

void cuda_folds_close(cuda_device *c)
{
    struct cuda_folds *folds = c->state;
    if (folds == NULL)
        return;
    while (folds->idle != NULL) {
        fold_job *j = folds->idle;
        folds->idle = j->next;
        if (j->pinned != NULL)
            keep_outgrown(folds, j->pinned);
        free(j);
    }
    while (folds->outgrown != NULL) {
        void *pinned = folds->outgrown;
        folds->outgrown = *(void **)pinned;
        (void)cuda_driver_load()->host_free(pinned);
    }
    pthread_mutex_destroy(&folds->lock);
    free(folds);
}
