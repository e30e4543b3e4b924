/* SPDX-License-Identifier: Apache-2.0
 * The public calls: arguments are checked here, before anything is sent, and become a work. */
#include "comm.h"

/* ---- Arguments -------------------------------------------------------------------- */

static ring_status check_types(const call_signature *call)
{
    const char *name = plan_collective_name(call->collective);
    if (ring_dtype_size(call->dtype) == 0)
        return fail(RING_ERR_ARGUMENT, "ring_%s: unknown dtype %d", name, (int)call->dtype);
    if (plan_reduces(call->collective) && (unsigned)call->op >= RING_OP_COUNT)
        return fail(RING_ERR_ARGUMENT, "ring_%s: unknown op %d", name, (int)call->op);
    return RING_OK;
}

static ring_status check_ranks(const ring_comm *comm, const call_signature *call)
{
    const bool pair = call->collective == PLAN_SEND || call->collective == PLAN_RECV;
    const char *name = plan_collective_name(call->collective);
    if (call->root < 0 || call->root >= comm->ranks)
        return fail(RING_ERR_ARGUMENT, "ring_%s: %s %d; the communicator has ranks 0 to %d", name,
                    pair ? "peer" : "root", call->root, comm->ranks - 1);
    if (pair && call->root == comm->rank)
        return fail(RING_ERR_ARGUMENT, "ring_%s: peer %d is this rank itself", name, call->root);
    return RING_OK;
}

static ring_status check_buffers(const call_signature *call, const call_buffers *buffers)
{
    const char *name = plan_collective_name(call->collective);
    const size_t align = ring_dtype_size(call->dtype);
    const bool no_src = buffers->src == NULL && buffers->src_bytes > 0;
    const bool no_dst = buffers->dst == NULL && buffers->dst_bytes > 0;
    if (no_src || no_dst)
        return fail(RING_ERR_ARGUMENT, "ring_%s: %s is NULL with count %zu", name,
                    no_dst ? "dst" : "src", call->count);
    if (((uintptr_t)buffers->src | (uintptr_t)buffers->dst) % align != 0)
        return fail(RING_ERR_ARGUMENT, "ring_%s: buffers of %s must be aligned to %zu bytes", name,
                    ring_dtype_name(call->dtype), align);
    return RING_OK;
}

static ring_status check_options(const call_signature *call, const ring_call *options)
{
    const char *name = plan_collective_name(call->collective);
    if (options == NULL)
        return RING_OK;
    if (options->size < sizeof(ring_call))
        return fail(RING_ERR_ARGUMENT, "ring_%s: ring_call.size is %zu; start from RING_CALL_INIT",
                    name, options->size);
    if (options->stream != NULL)
        return fail(RING_ERR_UNSUPPORTED, "ring_%s: a stream was given, but this libring was built "
                    "without CUDA", name);
    if (!(options->timeout >= 0))
        return fail(RING_ERR_ARGUMENT, "ring_%s: ring_call.timeout must be 0 (RING_TIMEOUT) or more "
                    "seconds", name);
    return RING_OK;
}

/* Overlaps other than the documented in-place ones would be read after they were written. */
static ring_status check_overlap(const call_signature *call, const call_buffers *buffers,
                                 const void *in_place)
{
    const char *src = buffers->src, *dst = buffers->dst;
    const bool apart = src == NULL || dst == NULL || src + buffers->src_bytes <= dst ||
                       dst + buffers->dst_bytes <= src;
    if (apart || (const void *)dst == in_place)
        return RING_OK;
    return fail(RING_ERR_ARGUMENT, "ring_%s: src and dst overlap without being in place",
                plan_collective_name(call->collective));
}

/* ---- Start ------------------------------------------------------------------------ */

static ring_status start_locked(ring_comm *comm, const call_signature *call,
                                const call_buffers *buffers, const ring_call *options)
{
    ring_work *work;
    const ring_status verdict = comm_verdict(comm);
    if (verdict != RING_OK)
        return fail(verdict, "%s", comm->error);
    const ring_status started =
        work_start(comm, call, buffers, options != NULL ? options->timeout : 0, &work);
    if (started != RING_OK) { /* the others are in the call already: they must not wait */
        comm_fail(comm, NULL, started);
        return started;
    }
    if (options == NULL || options->work == NULL)
        return comm_wait(work);
    bool moved = false;
    comm_progress(comm, &moved);
    progress_kick(comm);
    *options->work = work;
    return RING_OK;
}

static ring_status start(ring_comm *comm, const call_signature *call,
                         const call_buffers *buffers, const void *in_place,
                         const ring_call *options)
{
    if (comm == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_%s: comm is NULL",
                    plan_collective_name(call->collective));
    RING_TRY(comm_check_own(comm, plan_collective_name(call->collective)));
    RING_TRY(check_types(call));
    RING_TRY(check_ranks(comm, call));
    RING_TRY(check_buffers(call, buffers));
    RING_TRY(check_options(call, options));
    RING_TRY(check_overlap(call, buffers, in_place));
    pthread_mutex_lock(&comm->lock);
    const ring_status status = start_locked(comm, call, buffers, options);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

/* Bytes of a vector of blocks * count elements. */
static ring_status vector_bytes(size_t count, size_t blocks, ring_dtype dtype, size_t *bytes)
{
    size_t elements;
    if (mul_size(count, blocks, &elements) && mul_size(elements, ring_dtype_size(dtype), bytes) &&
        *bytes <= PTRDIFF_MAX)
        return RING_OK;
    return fail(RING_ERR_ARGUMENT, "count %zu is more than memory can hold", count);
}

static size_t ranks_of(const ring_comm *comm)
{
    return comm != NULL ? (size_t)comm->ranks : 1;
}

static const void *block_of(const ring_comm *comm, const void *vector, size_t block_bytes)
{
    return comm != NULL && vector != NULL
               ? (const char *)vector + (size_t)comm->rank * block_bytes : vector;
}

/* ---- Collectives -------------------------------------------------------------------- */

ring_status ring_all_reduce(const void *src, void *dst, size_t count, ring_dtype dtype,
                            ring_op op, ring_comm *comm, const ring_call *call)
{
    size_t bytes = 0;
    RING_TRY(vector_bytes(count, 1, dtype, &bytes));
    const call_signature signature = {PLAN_ALL_REDUCE, dtype, op, 0, count};
    return start(comm, &signature, &(call_buffers){src, dst, bytes, bytes}, src, call);
}

ring_status ring_reduce_scatter(const void *src, void *dst, size_t count, ring_dtype dtype,
                                ring_op op, ring_comm *comm, const ring_call *call)
{
    size_t block = 0, all = 0;
    RING_TRY(vector_bytes(count, ranks_of(comm), dtype, &all));
    RING_TRY(vector_bytes(count, 1, dtype, &block));
    const call_signature signature = {PLAN_REDUCE_SCATTER, dtype, op, 0, count};
    return start(comm, &signature, &(call_buffers){src, dst, all, block},
                 block_of(comm, src, block), call);
}

ring_status ring_all_gather(const void *src, void *dst, size_t count, ring_dtype dtype,
                            ring_comm *comm, const ring_call *call)
{
    size_t block = 0, all = 0;
    RING_TRY(vector_bytes(count, ranks_of(comm), dtype, &all));
    RING_TRY(vector_bytes(count, 1, dtype, &block));
    const call_signature signature = {PLAN_ALL_GATHER, dtype, RING_SUM, 0, count};
    const bool in_place = src != NULL && src == block_of(comm, dst, block);
    return start(comm, &signature, &(call_buffers){src, dst, block, all},
                 in_place ? dst : NULL, call);
}

ring_status ring_broadcast(const void *src, void *dst, size_t count, ring_dtype dtype,
                           int root, ring_comm *comm, const ring_call *call)
{
    size_t bytes = 0;
    RING_TRY(vector_bytes(count, 1, dtype, &bytes));
    const bool is_root = comm != NULL && comm->rank == root;
    const call_signature signature = {PLAN_BROADCAST, dtype, RING_SUM, root, count};
    return start(comm, &signature,
                 &(call_buffers){is_root ? src : dst, dst, bytes, bytes},
                 is_root ? src : dst, call);
}

ring_status ring_reduce(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                        int root, ring_comm *comm, const ring_call *call)
{
    size_t bytes = 0;
    RING_TRY(vector_bytes(count, 1, dtype, &bytes));
    const bool is_root = comm != NULL && comm->rank == root;
    const call_signature signature = {PLAN_REDUCE, dtype, op, root, count};
    return start(comm, &signature,
                 &(call_buffers){src, is_root ? dst : NULL, bytes, is_root ? bytes : 0}, src,
                 call);
}

ring_status ring_barrier(ring_comm *comm, const ring_call *call)
{
    const call_signature signature = {PLAN_BARRIER, RING_UINT8, RING_SUM, 0, 0};
    return start(comm, &signature, &(call_buffers){0}, NULL, call);
}

ring_status ring_send(const void *src, size_t count, ring_dtype dtype, int peer,
                      ring_comm *comm, const ring_call *call)
{
    size_t bytes = 0;
    RING_TRY(vector_bytes(count, 1, dtype, &bytes));
    const call_signature signature = {PLAN_SEND, dtype, RING_SUM, peer, count};
    return start(comm, &signature, &(call_buffers){.src = src, .src_bytes = bytes}, NULL, call);
}

ring_status ring_recv(void *dst, size_t count, ring_dtype dtype, int peer, ring_comm *comm,
                      const ring_call *call)
{
    size_t bytes = 0;
    RING_TRY(vector_bytes(count, 1, dtype, &bytes));
    const call_signature signature = {PLAN_RECV, dtype, RING_SUM, peer, count};
    return start(comm, &signature, &(call_buffers){.dst = dst, .dst_bytes = bytes}, NULL, call);
}

/* ---- Work handles -------------------------------------------------------------------- */

ring_status ring_wait(ring_work *work)
{
    if (work == NULL)
        return RING_OK;
    ring_comm *comm = work->comm;
    if (comm == NULL)
        return work_end_orphan(work);
    RING_TRY(comm_check_own(comm, "wait"));
    pthread_mutex_lock(&comm->lock);
    const ring_status status = comm_wait(work);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

ring_status ring_test(ring_work *work, int *done)
{
    if (done == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_test: done is NULL");
    *done = 1;
    if (work == NULL)
        return RING_OK;
    ring_comm *comm = work->comm;
    if (comm == NULL)
        return work_end_orphan(work);
    RING_TRY(comm_check_own(comm, "test"));
    ring_status status = RING_OK;
    bool moved = false;
    pthread_mutex_lock(&comm->lock);
    comm_progress(comm, &moved);
    if (!work->finished)
        comm_look_after(comm);
    *done = work->finished;
    if (*done)
        status = comm_wait(work);
    pthread_mutex_unlock(&comm->lock);
    return status;
}
