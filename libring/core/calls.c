/* SPDX-License-Identifier: Apache-2.0
 * The public calls: arguments are checked by the collective's row, before anything is sent, and
 * become a work. */
#include "comm.h"

#include "regions.h"

#include <string.h>

/* One call with its arguments. */
typedef struct request {
    call_signature call;
    const void *src;
    void *dst;
    const ring_call *options; /* may be NULL */
} request;

/* ---- Arguments; those that decide the program are checked where it is built ---------------- */

static ring_status check_buffers(const program *p, const call_buffers *b)
{
    const size_t align = ring_dtype_size(p->call.dtype);
    const bool no_src = b->src == NULL && b->src_bytes > 0;
    const bool no_dst = b->dst == NULL && b->dst_bytes > 0;
    if (no_src || no_dst)
        return fail(RING_ERR_ARGUMENT, "ring_%s: %s is NULL with count %zu", p->facts->name,
                    no_dst ? "dst" : "src", p->call.count);
    if ((((uintptr_t)b->src | (uintptr_t)b->dst) & (align - 1)) != 0)
        return fail(RING_ERR_ARGUMENT, "ring_%s: buffers of %s must be aligned to %zu bytes",
                    p->facts->name, ring_dtype_name(p->call.dtype), align);
    return RING_OK;
}

static bool is_in_place(const program *p, const call_buffers *b)
{
    const char *src = b->src, *dst = b->dst;
    switch (p->facts->in_place) {
    case PLAN_SAME:
        return src == dst;
    case PLAN_DST_IS_BLOCK_OF_SRC:
        return dst == src + p->block;
    case PLAN_SRC_IS_BLOCK_OF_DST:
        return src == dst + p->block;
    default:
        return false;
    }
}

/* Overlaps other than the documented in-place ones would be read after they were written. */
static ring_status check_overlap(const program *p, const call_buffers *b)
{
    const char *src = b->src, *dst = b->dst;
    if (src == NULL || dst == NULL || src + b->src_bytes <= dst || dst + b->dst_bytes <= src ||
        is_in_place(p, b))
        return RING_OK;
    return fail(RING_ERR_ARGUMENT, "ring_%s: src and dst overlap without being in place",
                p->facts->name);
}

/* @param[out] by  whose memory it is, NULL: the host's. */
static ring_status find_accelerator(const program *p, const void *at, size_t bytes,
                                    const accelerator **by)
{
    *by = bytes > 0 ? region_accelerator(region_ref(at, 1)) : NULL;
    if (*by == NULL || region_accelerator(region_ref(at, bytes)) == *by)
        return RING_OK;
    return fail(RING_ERR_ARGUMENT,
                "ring_%s: %zu bytes at %p begin in memory of %s and end outside of it",
                p->facts->name, bytes, at, (*by)->name);
}

static ring_status find_accelerators(const program *p, call_buffers *b)
{
    RING_TRY(find_accelerator(p, b->src, b->src_bytes, &b->src_by));
    RING_TRY(find_accelerator(p, b->dst, b->dst_bytes, &b->dst_by));
    if (b->src_by == NULL || b->dst_by == NULL || b->src_by == b->dst_by)
        return RING_OK;
    return fail(RING_ERR_UNSUPPORTED,
                "ring_%s: src is memory of %s and dst of %s; both must be of one accelerator, or "
                "one of them of the host",
                p->facts->name, b->src_by->name, b->dst_by->name);
}

/* A rank that has no src of its own in a rooted call reads what it gets in dst. */
static ring_status bind_buffers(const program *p, const request *r, call_buffers *b)
{
    *b = (call_buffers){.dst = p->dst_here ? r->dst : NULL,
                        .dst_bytes = p->dst_here ? p->dst_bytes : 0};
    const bool reads_dst = p->facts->rooted && !p->src_here;
    b->src = p->src_here ? r->src : reads_dst ? b->dst : NULL;
    b->src_bytes = p->src_here ? p->src_bytes : reads_dst ? b->dst_bytes : 0;
    RING_TRY(check_buffers(p, b));
    if (regions_have_devices())
        RING_TRY(find_accelerators(p, b));
    return check_overlap(p, b);
}

/* What a caller's struct lacks is zero; what it has beyond this one is of a later version. */
static ring_status read_options(const char *name, const ring_call *given, ring_call *options)
{
    *options = (ring_call)RING_CALL_INIT;
    if (given->size == 0)
        return fail(RING_ERR_ARGUMENT, "ring_%s: ring_call.size is 0; start from RING_CALL_INIT",
                    name);
    memcpy(options, given, min_size(given->size, sizeof *options));
    if (options->stream != NULL)
        return fail(RING_ERR_UNSUPPORTED,
                    "ring_%s: a stream was given, but this libring was built without CUDA", name);
    if (!(options->timeout >= 0))
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: ring_call.timeout must be 0 (RING_TIMEOUT) or more seconds", name);
    return RING_OK;
}

/* ---- Start ------------------------------------------------------------------------ */

static ring_status wait_and_recycle(work *w)
{
    if (wait_for_work(w, 0) == RING_IN_PROGRESS) {
        w->detached = true; /* an orphan since the wait */
        return fail(RING_IN_PROGRESS,
                    "ring_%s: ring_call.after was not set within RING_TIMEOUT; the call goes on "
                    "without its caller",
                    w->program->facts->name);
    }
    const ring_status status = w->status;
    if (status != RING_OK)
        fail(status, "%s", w->comm->error);
    work_recycle(w);
    return status;
}

static ring_status run(work *w, const ring_call *options)
{
    const bool stays = options->work == NULL && options->on_done == NULL;
    w->detached = !stays && options->work == NULL;
    work_set_orphan(w, !stays);
    engine_start(w);
    return stays ? wait_and_recycle(w) : RING_OK;
}

/* The others are in the call already: they must not wait. */
static ring_status cannot_start(ring_comm *comm, ring_status status)
{
    comm_fail(comm, NULL, status);
    return status;
}

/* @param[in,out] options  those of a call without any; replaced by @p room if this one has some. */
static ring_status check_rest(const request *r, const program *p, call_buffers *buffers,
                              const ring_call **options, ring_call *room)
{
    if (r->options != NULL) {
        RING_TRY(read_options(p->facts->name, r->options, room));
        *options = room;
    }
    return bind_buffers(p, r, buffers);
}

static bool is_refusal(ring_status status)
{
    return status == RING_ERR_ARGUMENT || status == RING_ERR_UNSUPPORTED;
}

static ring_status start_locked(ring_comm *comm, const request *r)
{
    static const ring_call none = RING_CALL_INIT;
    const ring_call *options = &none;
    ring_call room;
    program *p;
    work *w;
    call_buffers buffers;
    if (!comm_is_fine(comm)) {
        engine_end_if_failed(comm);
        return fail(comm_verdict(comm), "%s", comm->error);
    }
    ring_status status = programs_get(comm, &r->call, &p);
    if (status == RING_OK)
        status = check_rest(r, p, &buffers, &options, &room);
    if (is_refusal(status)) {
        statements_refuse(comm, &r->call);
        return status;
    }
    if (status == RING_OK)
        status = statements_check(comm);
    if (status == RING_OK)
        status = work_new(comm, p, &buffers, options, &w);
    return status == RING_OK ? run(w, options) : cannot_start(comm, status);
}

static ring_status start(const request *r, ring_comm *comm)
{
    const char *name = plan_collective_name(r->call.collective);
    if (comm == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_%s: comm is NULL", name);
    RING_TRY(comm_check_own(comm, name));
    pthread_mutex_lock(&comm->lock);
    const ring_status status = start_locked(comm, r);
    comm_unlock(comm);
    return status;
}

/* ---- Collectives -------------------------------------------------------------------- */

#define START(collective, dtype, op, root, count, src, dst) \
    start(&(const request){{collective, dtype, op, root, count}, src, dst, call}, comm)

ring_status ring_all_reduce(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                            ring_comm *comm, const ring_call *call)
{
    return START(PLAN_ALL_REDUCE, dtype, op, 0, count, src, dst);
}

ring_status ring_reduce_scatter(const void *src, void *dst, size_t count, ring_dtype dtype,
                                ring_op op, ring_comm *comm, const ring_call *call)
{
    return START(PLAN_REDUCE_SCATTER, dtype, op, 0, count, src, dst);
}

ring_status ring_all_gather(const void *src, void *dst, size_t count, ring_dtype dtype,
                            ring_comm *comm, const ring_call *call)
{
    return START(PLAN_ALL_GATHER, dtype, RING_SUM, 0, count, src, dst);
}

ring_status ring_broadcast(const void *src, void *dst, size_t count, ring_dtype dtype, int root,
                           ring_comm *comm, const ring_call *call)
{
    return START(PLAN_BROADCAST, dtype, RING_SUM, root, count, src, dst);
}

ring_status ring_reduce(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                        int root, ring_comm *comm, const ring_call *call)
{
    return START(PLAN_REDUCE, dtype, op, root, count, src, dst);
}

ring_status ring_barrier(ring_comm *comm, const ring_call *call)
{
    return START(PLAN_BARRIER, RING_UINT8, RING_SUM, 0, 0, NULL, NULL);
}

ring_status ring_send(const void *src, size_t count, ring_dtype dtype, int peer, ring_comm *comm,
                      const ring_call *call)
{
    return START(PLAN_SEND, dtype, RING_SUM, peer, count, src, NULL);
}

ring_status ring_recv(void *dst, size_t count, ring_dtype dtype, int peer, ring_comm *comm,
                      const ring_call *call)
{
    return START(PLAN_RECV, dtype, RING_SUM, peer, count, NULL, dst);
}
