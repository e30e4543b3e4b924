/* SPDX-License-Identifier: Apache-2.0
 * Implements the public collectives, sends and receives. Each public function describes its call as
 * a prepared_call. start() checks all arguments before anything is sent, and then starts a work for
 * the call. */
#include "calls.h"

#include "automatic.h"
#include "call_group.h"
#include "call_reports.h"
#include "device_calls.h"
#include "engine.h"
#include "lists.h"
#include "nvtx.h"
#include "prepared.h"
#include "program_cache.h"
#include "regions.h"
#include "shape.h"
#include "streams.h"
#include "tagged.h"
#include "wait.h"

#include <float.h>
#include <stddef.h>
#include <string.h>

/* ---- Arguments (program.c checks those that select the program) ----------------------------- */

static ring_status check_buffers(const program *p, const call_buffers *b)
{
    const size_t align = ring_dtype_size(p->call.dtype);
    const bool no_src = b->src == NULL && b->src_bytes > 0 && b->lists[PLAN_SRC] == NULL;
    const bool no_dst = b->dst == NULL && b->dst_bytes > 0 && b->lists[PLAN_DST] == NULL;
    const size_t count = (no_dst ? b->dst_bytes : b->src_bytes) / align;
    if (no_src || no_dst)
        return fail(RING_ERR_ARGUMENT, "ring_%s: %s is NULL but has %zu element%s", p->facts->name,
                    no_dst ? "dst" : "src", count, plural(count));
    if ((((uintptr_t)b->src | (uintptr_t)b->dst) & (align - 1)) != 0)
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: src is %p and dst is %p; both must be aligned to %zu bytes, the size "
                    "of %s",
                    p->facts->name, b->src, (const void *)b->dst, align,
                    ring_dtype_name(p->call.dtype));
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

/* Only the documented in-place forms may overlap: with any other overlap the collective would read
 * bytes that it has already overwritten. */
static ring_status check_overlap(const program *p, const call_buffers *b)
{
    const char *src = b->src, *dst = b->dst;
    if (b->src_bytes == 0 || b->dst_bytes == 0 || src + b->src_bytes <= dst ||
        dst + b->dst_bytes <= src || is_in_place(p, b))
        return RING_OK;
    return fail(RING_ERR_ARGUMENT,
                "ring_%s: src and dst overlap, but the call is not in place as ring.h defines it",
                p->facts->name);
}

/* Most memory belongs to the communicator's accelerator, so this is asked first.
 * @param[out] by  the accelerator that owns the memory; NULL if it is host memory. */
static ring_status find_accelerator(const ring_comm *comm, const program *p, const void *at,
                                    size_t bytes, const accelerator **by)
{
    bool whole = true;
    *by = bytes > 0 ? comm->accelerator : NULL;
    if (bytes > 0)
        RING_TRY(automatic_device(at, bytes, by, &whole));
    if (*by == NULL || whole)
        return RING_OK;
    return fail(RING_ERR_ARGUMENT,
                "ring_%s: the %zu bytes at %p start in memory of %s but end outside it",
                p->facts->name, bytes, at, (*by)->name);
}

/* Finds the accelerator that owns all blocks of a list. */
static ring_status find_of_list(const ring_comm *comm, const program *p, const void *const *list,
                                int side, const accelerator **by)
{
    const size_t size = ring_dtype_size(p->call.dtype), *counts = p->shape.counts[side];
    const accelerator *first = NULL, *next;
    bool found = false;
    for (int i = 0; i < comm->ranks; i++) {
        if (counts[i] == 0)
            continue;
        RING_TRY(find_accelerator(comm, p, list[i], counts[i] * size, &next));
        if (found && next != first)
            return fail(RING_ERR_UNSUPPORTED,
                        "ring_%s: the blocks of %s must all be in memory of one accelerator, or "
                        "all in host memory",
                        p->facts->name, shape_side_name(side));
        first = next;
        found = true;
    }
    *by = first;
    return RING_OK;
}

static ring_status find_of_side(const ring_comm *comm, const program *p, const call_buffers *b,
                                int side, const accelerator **by)
{
    if (b->lists[side] != NULL)
        return find_of_list(comm, p, b->lists[side], side, by);
    return side == PLAN_SRC ? find_accelerator(comm, p, b->src, b->src_bytes, by)
                            : find_accelerator(comm, p, b->dst, b->dst_bytes, by);
}

static ring_status find_accelerators(const ring_comm *comm, const program *p, call_buffers *b)
{
    RING_TRY(find_of_side(comm, p, b, PLAN_SRC, &b->src_by));
    RING_TRY(find_of_side(comm, p, b, PLAN_DST, &b->dst_by));
    if (b->src_by == NULL || b->dst_by == NULL || b->src_by == b->dst_by)
        return RING_OK;
    return fail(RING_ERR_UNSUPPORTED,
                "ring_%s: src is in memory of %s and dst in memory of %s; both must be on the same "
                "accelerator, or one of them on the host",
                p->facts->name, b->src_by->name, b->dst_by->name);
}

/* Reads this rank's factor, which must be finite in the accumulator's type. */
static ring_status read_scale(const program *p, const double *given, double *scale)
{
    const double most = p->call.dtype == RING_FLOAT64 ? DBL_MAX : (double)FLT_MAX;
    if (given == NULL)
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: premul_sum needs this rank's factor in "
                    "ring_call.scale",
                    p->facts->name);
    if (!(*given >= -most && *given <= most))
        return fail(RING_ERR_ARGUMENT, "ring_%s: ring_call.scale is %g; it must be a finite %s",
                    p->facts->name, *given, p->call.dtype == RING_FLOAT64 ? "float64" : "float32");
    *scale = *given;
    return RING_OK;
}

static bool multiplies(const program *p)
{
    return p->facts->reduces && p->call.op == RING_PREMUL_SUM;
}

/* A prepared call stores no factor: each start passes its own. */
static ring_status take_scale(const ring_comm *comm, const program *p, const ring_call *options,
                              call_buffers *b)
{
    const accelerator *by = NULL;
    b->products.scale = 1;
    b->products.at = NULL;
    if (options->scale != NULL && !multiplies(p))
        return fail(RING_ERR_ARGUMENT, "ring_%s: ring_call.scale is only for premul_sum",
                    p->facts->name);
    if (!multiplies(p) || options->prepared != NULL)
        return RING_OK;
    if (options->scale != NULL && regions_have_devices())
        RING_TRY(find_accelerator(comm, p, options->scale, sizeof(double), &by));
    if (by == NULL)
        return read_scale(p, options->scale, &b->products.scale);
    b->products.at = options->scale;
    return by == comm->accelerator
               ? RING_OK
               : fail(RING_ERR_UNSUPPORTED,
                      "ring_%s: ring_call.scale is in memory of %s; it must be in that of the "
                      "communicator's accelerator, or the host's",
                      p->facts->name, by->name);
}

/* The host multiplies only memory of its own, by a factor that it can read. */
static ring_status check_host_products(const program *p, const call_buffers *b)
{
    const accelerator *by = b->dst_by != NULL ? b->dst_by : b->src_by;
    if (!multiplies(p) || (by == NULL && b->products.at == NULL))
        return RING_OK;
    return fail(
        RING_ERR_UNSUPPORTED,
        "ring_%s: premul_sum does not support %s of %s where the host drives calls; multiply "
        "first, then use sum",
        p->facts->name, by != NULL ? "memory" : "a factor in memory",
        by != NULL ? by->name : "an accelerator");
}

/* A side uses its list only if this rank has counts for that side. */
static ring_status check_lists(const program *p, call_buffers *b)
{
    for (int side = 0; side < 2; side++) {
        if (p->shape.counts[side] == NULL)
            b->lists[side] = NULL;
        else if (b->lists[side] == NULL)
            return fail(RING_ERR_ARGUMENT, "ring_%s: the list of the blocks of %s is NULL",
                        p->facts->name, shape_side_name(side));
    }
    return RING_OK;
}

/* Keeps only the buffers that the collective uses on this rank, computes their sizes, and checks
 * them. On ranks other than the root, a broadcast's src is its dst. */
static ring_status bind_buffers(prepared_call *c)
{
    const program *p = c->program;
    call_buffers *b = &c->buffers;
    const bool reads_dst = p->facts->result == PLAN_ROOTS && !p->src_here && !p->facts->src_blocks;
    if (!p->dst_here)
        b->dst = NULL;
    if (!p->src_here)
        b->src = reads_dst ? b->dst : NULL;
    b->dst_bytes = p->dst_here ? p->dst_bytes : 0;
    b->src_bytes = p->src_here ? p->src_bytes : reads_dst ? b->dst_bytes : 0;
    if (b->listed)
        RING_TRY(check_lists(p, b));
    RING_TRY(check_buffers(p, b));
    if (regions_have_devices())
        RING_TRY(find_accelerators(c->comm, p, b));
    return has_list(b) ? lists_check(c->comm, p, b) : check_overlap(p, b);
}

/* Fields that an older caller's struct lacks stay zero; fields of a later version are ignored. */
static ring_status read_options(const char *name, const ring_call *given, ring_call *options)
{
    *options = (ring_call)RING_CALL_INIT;
    if (given->size == 0)
        return fail(RING_ERR_ARGUMENT, "ring_%s: ring_call.size is 0; start from RING_CALL_INIT",
                    name);
    memcpy(options, given, min_size(given->size, sizeof *options));
    if (!(options->timeout >= 0) && options->timeout != RING_TIMEOUT_NONE)
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: ring_call.timeout is %g; it must be a positive number of seconds, "
                    "RING_TIMEOUT_NONE, or 0 for RING_TIMEOUT",
                    name, options->timeout);
    return RING_OK;
}

/* ---- Start ------------------------------------------------------------------------ */

ring_status call_await(work *w)
{
    if (wait_for_work(w, 0) == RING_IN_PROGRESS) {
        w->result.detached = true; /* no thread waits for it any more */
        return fail(RING_IN_PROGRESS,
                    "ring_%s: ring_call.after was not set within RING_TIMEOUT; the call continues "
                    "in the background",
                    w->program->facts->name);
    }
    const ring_status status = w->result.status;
    if (status != RING_OK)
        fail(status, "%s", w->comm->failure.text);
    work_recycle(w);
    return status;
}

/* Starts a work. @return the work if its caller must wait for it. Otherwise NULL, because the work
 * may have ended and been recycled. */
static work *run(work *w, const ring_call *options, bool beside)
{
    const bool stays = options->work == NULL && options->on_done == NULL && options->stream == NULL;
    w->result.detached = !stays && options->work == NULL;
    work_set_orphan(w, !stays || beside);
    engine_start(w);
    return stays ? w : NULL;
}

ring_status call_cannot_start(ring_comm *comm, ring_status status)
{
    char text[1024]; /* room for the longest fail_text() */
    text_format(text, sizeof text, "%s", fail_text());
    comm_fail(comm, NULL, status);
    failure_await(comm);
    engine_end_if_failed(comm);
    return fail(status, "%s", text);
}

/* A recv from any source uses the program of a recv from this rank itself until it is matched with
 * a send. */
static ring_status find_program(prepared_call *c, plan_shape *shape)
{
    ring_comm *comm = c->comm;
    if (c->call.tagged && c->call.root == RING_ANY_SOURCE && c->call.collective == PLAN_RECV) {
        call_signature call = c->call;
        call.root = comm->rank;
        return programs_get(comm, &call, &c->program);
    }
    if (shape != NULL)
        RING_TRY(shape_read(&c->call, shape, comm->rank, comm->ranks));
    return programs_get(comm, &c->call, &c->program);
}

/* Checks the call's stream, and replaces the program by a device program if accelerators run the
 * call. */
static ring_status choose_way(prepared_call *c)
{
    if (c->options.stream != NULL)
        RING_TRY(stream_check(c));
    const bool runs = device_call_runs(c);
    if (c->captured && !runs)
        return device_call_refuse_capture(c);
    if (!runs)
        return check_host_products(c->program, &c->buffers);
    call_signature call = c->program->call;
    call.on_device = true;
    return programs_get(c->comm, &call, &c->program);
}

/* Checks the arguments of a call. @param shape  the counts of a v-form, else NULL.
 * @param options  the caller's options, or NULL. */
static ring_status check(prepared_call *c, plan_shape *shape, const ring_call *options)
{
    ring_status status = RING_OK;
    if (options != NULL) {
        status = read_options(plan_facts_of(c->call.collective)->name, options, &c->options);
        status = tagged_read(&c->call, &c->options, status);
    }
    if (status == RING_OK)
        status = find_program(c, shape);
    RING_TRY(status);
    RING_TRY(bind_buffers(c));
    return take_scale(c->comm, c->program, &c->options, &c->buffers);
}

static ring_status check_fine(ring_comm *comm)
{
    if (comm_is_fine(comm))
        return RING_OK;
    engine_end_if_failed(comm);
    return fail(comm_verdict(comm), "%s", comm->failure.text);
}

/* As check_fine(), but first collects failures of graph replays. */
static ring_status check_ready(ring_comm *comm)
{
    device_calls_collect(comm);
    failure_await(comm);
    return check_fine(comm);
}

ring_status call_launch(const prepared_call *c, bool beside, work **stays)
{
    work *w;
    *stays = NULL;
    RING_TRY(check_fine(c->comm));
    ring_status status = reports_check(c->comm);
    if (status == RING_OK)
        status = work_new(c->comm, c->program, &c->buffers, &c->options, &w);
    if (status == RING_OK && c->stop != NULL)
        work_stop(w, c->stop);
    if (status == RING_OK)
        w->stream.run = c->run;
    if (status == RING_OK)
        w->stream.is_given = c->options.stream != NULL;
    if (status == RING_OK && c->call.tagged)
        status = tagged_enlist(w, &c->call, c->options.envelope);
    if (status != RING_OK)
        return call_cannot_start(c->comm, status);
    *stays = run(w, &c->options, beside);
    return RING_OK;
}

static ring_status enter_stream(prepared_call *c)
{
    return c->program->call.on_device ? device_call_start(c, device_call_patience())
                                      : stream_stop(c);
}

/* Enqueueing may block until earlier calls end, which need the lock, so the lock is released. */
static ring_status stop_stream(prepared_call *c)
{
    atomic_fetch_add(&c->program->kept, 1);
    comm_unlock(c->comm);
    const ring_status status = enter_stream(c);
    comm_lock(c->comm);
    atomic_fetch_sub(&c->program->kept, 1);
    return status;
}

/* Starts a call that has been checked, adds it to the open group, or reports that it was refused.
 * @param status  the result of the checks. */
static ring_status launch(prepared_call *c, ring_status status)
{
    work *stays;
    const bool enters = c->program != NULL &&
                        (c->program->call.on_device || stream_orders(c) != NULL);
    if (status == RING_OK && enters && !call_group_is_open()) {
        status = stop_stream(c);
        if (c->captured)
            return status;
    }
    /* A call is only refused for its arguments; other errors end the communicator. */
    if (status != RING_OK && status != RING_ERR_ARGUMENT && status != RING_ERR_UNSUPPORTED)
        return call_cannot_start(c->comm, status);
    if (call_group_is_open()) {
        const ring_status kept = call_group_add(c, status);
        return kept == RING_ERR_MEMORY ? call_cannot_start(c->comm, kept) : kept;
    }
    if (status != RING_OK) {
        reports_refuse(c->comm, &c->call);
        return status;
    }
    status = call_launch(c, false, &stays);
    if (c->stop != NULL)
        stop_drop(&c->stop);
    return status == RING_OK && stays != NULL ? call_await(stays) : status;
}

static ring_status start_locked(prepared_call *c, plan_shape *shape, const ring_call *options)
{
    RING_TRY(check_ready(c->comm));
    ring_status status = check(c, shape, options);
    if (status == RING_OK)
        status = choose_way(c);
    return launch(c, status);
}

/* Preparing a call takes no call number, and an error does not end the communicator. */
static ring_status prepare_locked(prepared_call *c, plan_shape *shape, const ring_call *options,
                                  ring_prepared **out)
{
    RING_TRY(check_fine(c->comm));
    RING_TRY(check(c, shape, options));
    const ring_call *o = &c->options;
    if (o->work != NULL || o->on_done != NULL || o->after != NULL || o->timeout != 0 ||
        o->scale != NULL || o->envelope != NULL || o->stream != NULL)
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: ring_call.prepared cannot be combined with other options; pass those "
                    "to ring_prepared_start()",
                    c->program->facts->name);
    c->options = (ring_call)RING_CALL_INIT;
    *out = prepared_keep(c);
    return *out != NULL ? RING_OK
                        : fail(RING_ERR_MEMORY, "out of memory while preparing ring_%s",
                               c->program->facts->name);
}

/* @return true if RING_NVTX is set, so that nvtx_end() must follow. */
static bool mark_for_profilers(const ring_comm *comm, const char *name)
{
    char range[40];
    if (!comm->settings.nvtx)
        return false;
    (void)text_format(range, sizeof range, "ring_%s", name);
    nvtx_begin(range);
    return true;
}

/* Starts a call, or prepares it if its options ask for that. @param c  holds the communicator, the
 * signature and the caller's buffers. */
static ring_status start(prepared_call *c, plan_shape *shape, const ring_call *options)
{
    const char *name = plan_collective_name(c->call.collective);
    /* A program that was built with an older ring.h passes a struct without this field. */
    const size_t end = offsetof(ring_call, prepared) + sizeof options->prepared;
    ring_prepared **kept = options != NULL && options->size >= end ? options->prepared : NULL;
    if (kept != NULL)
        *kept = NULL;
    ring_status status = c->comm != NULL ? comm_check_own(c->comm, name)
                                         : fail(RING_ERR_ARGUMENT, "ring_%s: comm is NULL", name);
    if (status == RING_OK) {
        const bool marked = mark_for_profilers(c->comm, name);
        comm_lock(c->comm);
        status = kept != NULL ? prepare_locked(c, shape, options, kept)
                              : start_locked(c, shape, options);
        comm_unlock(c->comm);
        if (marked)
            nvtx_end();
    }
    return status == RING_OK || kept != NULL ? status : call_group_note(status);
}

/* ---- Prepared calls ----------------------------------------------------------------------- */

static ring_status start_again(const prepared_call *prepared, const ring_call *call)
{
    /* The fields are copied one by one, because other threads may be changing the list links. */
    prepared_call c = {.comm = prepared->comm,
                       .call = prepared->call,
                       .program = prepared->program,
                       .buffers = prepared->buffers,
                       .options = RING_CALL_INIT};
    RING_TRY(check_ready(c.comm));
    const char *name = c.program->facts->name;
    ring_status status = call != NULL ? read_options(name, call, &c.options) : RING_OK;
    if (status == RING_OK && c.options.prepared != NULL)
        status = fail(RING_ERR_ARGUMENT,
                      "ring_%s: the call is already prepared; leave out "
                      "ring_call.prepared",
                      name);
    if (status == RING_OK)
        status = tagged_read_again(&c.call, &c.options);
    if (status == RING_OK)
        status = take_scale(c.comm, c.program, &c.options, &c.buffers);
    if (status == RING_OK)
        status = choose_way(&c);
    return launch(&c, status);
}

static ring_status start_prepared(const prepared_call *prepared, const ring_call *call)
{
    if (prepared == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_prepared_start: prepared is NULL");
    ring_comm *comm = prepared->comm;
    if (comm == NULL)
        return fail(RING_ERR_USAGE,
                    "ring_prepared_start: the communicator was destroyed or belongs "
                    "to the parent process");
    RING_TRY(comm_check_own(comm, "prepared_start"));
    const bool marked = mark_for_profilers(comm, "prepared_start");
    comm_lock(comm);
    const ring_status status = start_again(prepared, call);
    comm_unlock(comm);
    if (marked)
        nvtx_end();
    return status;
}

ring_status ring_prepared_start(ring_prepared *prepared, const ring_call *call)
{
    const ring_status status = start_prepared(prepared, call);
    return status == RING_OK ? RING_OK : call_group_note(status);
}

void ring_prepared_destroy(ring_prepared *prepared)
{
    if (prepared != NULL)
        prepared_drop(prepared);
}

/* ---- The library's own calls ---------------------------------------------------------------- */

ring_status call_all_gather(ring_comm *comm, void *all, size_t bytes)
{
    prepared_call c = {.comm = comm,
                       .call = {.collective = PLAN_ALL_GATHER, .dtype = RING_UINT8, .count = bytes},
                       .buffers = {.src = (const char *)all + (size_t)comm->rank * bytes,
                                   .dst = all},
                       .options = RING_CALL_INIT};
    comm_lock(comm);
    const ring_status status = start_locked(&c, NULL, NULL);
    comm_unlock(comm);
    return status;
}

/* ---- The calls ---------------------------------------------------------------------------- */

/* Starts a collective whose blocks all have `count` elements, or a send to or recv from `root`. */
static ring_status start_even(plan_collective collective, const void *src, void *dst, size_t count,
                              ring_dtype dtype, ring_op op, int root, ring_comm *comm,
                              const ring_call *options)
{
    prepared_call c = {
        .comm = comm,
        .call = {.collective = collective, .dtype = dtype, .op = op, .root = root, .count = count},
        .buffers = {.src = src, .dst = dst},
        .options = RING_CALL_INIT};
    return start(&c, NULL, options);
}

/* Starts a collective whose blocks have the counts of a shape: a v-form or a list form. */
static ring_status start_uneven(plan_collective collective, call_buffers buffers, plan_shape shape,
                                ring_dtype dtype, ring_op op, int root, ring_comm *comm,
                                const ring_call *options)
{
    prepared_call c = {.comm = comm,
                       .call = {.collective = collective, .dtype = dtype, .op = op, .root = root},
                       .buffers = buffers,
                       .options = RING_CALL_INIT};
    return start(&c, &shape, options);
}

ring_status ring_all_reduce(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                            ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_ALL_REDUCE, src, dst, count, dtype, op, 0, comm, call);
}

ring_status ring_reduce_scatter(const void *src, void *dst, size_t count, ring_dtype dtype,
                                ring_op op, ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_REDUCE_SCATTER, src, dst, count, dtype, op, 0, comm, call);
}

ring_status ring_all_gather(const void *src, void *dst, size_t count, ring_dtype dtype,
                            ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_ALL_GATHER, src, dst, count, dtype, RING_SUM, 0, comm, call);
}

ring_status ring_broadcast(const void *src, void *dst, size_t count, ring_dtype dtype, int root,
                           ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_BROADCAST, src, dst, count, dtype, RING_SUM, root, comm, call);
}

ring_status ring_reduce(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                        int root, ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_REDUCE, src, dst, count, dtype, op, root, comm, call);
}

ring_status ring_gather(const void *src, void *dst, size_t count, ring_dtype dtype, int root,
                        ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_GATHER, src, dst, count, dtype, RING_SUM, root, comm, call);
}

ring_status ring_scatter(const void *src, void *dst, size_t count, ring_dtype dtype, int root,
                         ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_SCATTER, src, dst, count, dtype, RING_SUM, root, comm, call);
}

ring_status ring_all_to_all(const void *src, void *dst, size_t count, ring_dtype dtype,
                            ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_ALL_TO_ALL, src, dst, count, dtype, RING_SUM, 0, comm, call);
}

ring_status ring_scan(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                      ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_SCAN, src, dst, count, dtype, op, 0, comm, call);
}

ring_status ring_exscan(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                        ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_EXSCAN, src, dst, count, dtype, op, 0, comm, call);
}

ring_status ring_barrier(ring_comm *comm, const ring_call *call)
{
    return start_even(PLAN_BARRIER, NULL, NULL, 0, RING_UINT8, RING_SUM, 0, comm, call);
}

ring_status ring_send(const void *src, size_t count, ring_dtype dtype, int peer, ring_comm *comm,
                      const ring_call *call)
{
    return start_even(PLAN_SEND, src, NULL, count, dtype, RING_SUM, peer, comm, call);
}

ring_status ring_recv(void *dst, size_t count, ring_dtype dtype, int peer, ring_comm *comm,
                      const ring_call *call)
{
    return start_even(PLAN_RECV, NULL, dst, count, dtype, RING_SUM, peer, comm, call);
}

/* ---- v-forms ------------------------------------------------------------------------------ */

ring_status ring_all_gather_v(const void *src, void *dst, const size_t *counts,
                              const size_t *displs, ring_dtype dtype, ring_comm *comm,
                              const ring_call *call)
{
    return start_uneven(PLAN_ALL_GATHER_V, (call_buffers){.src = src, .dst = dst},
                        (plan_shape){.counts = {NULL, counts}, .displs = {NULL, displs}}, dtype,
                        RING_SUM, 0, comm, call);
}

ring_status ring_reduce_scatter_v(const void *src, const size_t *counts, const size_t *displs,
                                  void *dst, ring_dtype dtype, ring_op op, ring_comm *comm,
                                  const ring_call *call)
{
    return start_uneven(PLAN_REDUCE_SCATTER_V, (call_buffers){.src = src, .dst = dst},
                        (plan_shape){.counts = {counts, NULL}, .displs = {displs, NULL}}, dtype, op,
                        0, comm, call);
}

ring_status ring_all_to_all_v(const void *src, const size_t *src_counts, const size_t *src_displs,
                              void *dst, const size_t *dst_counts, const size_t *dst_displs,
                              ring_dtype dtype, ring_comm *comm, const ring_call *call)
{
    return start_uneven(PLAN_ALL_TO_ALL_V, (call_buffers){.src = src, .dst = dst},
                        (plan_shape){.counts = {src_counts, dst_counts},
                                     .displs = {src_displs, dst_displs}},
                        dtype, RING_SUM, 0, comm, call);
}

ring_status ring_gather_v(const void *src, size_t count, void *dst, const size_t *counts,
                          const size_t *displs, ring_dtype dtype, int root, ring_comm *comm,
                          const ring_call *call)
{
    return start_uneven(PLAN_GATHER_V, (call_buffers){.src = src, .dst = dst},
                        (plan_shape){.own = count,
                                     .counts = {NULL, counts},
                                     .displs = {NULL, displs}},
                        dtype, RING_SUM, root, comm, call);
}

ring_status ring_scatter_v(const void *src, const size_t *counts, const size_t *displs, void *dst,
                           size_t count, ring_dtype dtype, int root, ring_comm *comm,
                           const ring_call *call)
{
    return start_uneven(PLAN_SCATTER_V, (call_buffers){.src = src, .dst = dst},
                        (plan_shape){.own = count,
                                     .counts = {counts, NULL},
                                     .displs = {displs, NULL}},
                        dtype, RING_SUM, root, comm, call);
}

/* ---- List forms, which are v-forms with an address for each block -------------------------- */

ring_status ring_all_gather_list(const void *src, void *const *dsts, const size_t *counts,
                                 ring_dtype dtype, ring_comm *comm, const ring_call *call)
{
    return start_uneven(PLAN_ALL_GATHER_V,
                        (call_buffers){.src = src,
                                       .listed = true,
                                       .lists[PLAN_DST] = (const void *const *)dsts},
                        (plan_shape){.counts = {NULL, counts}}, dtype, RING_SUM, 0, comm, call);
}

ring_status ring_reduce_scatter_list(const void *const *srcs, const size_t *counts, void *dst,
                                     ring_dtype dtype, ring_op op, ring_comm *comm,
                                     const ring_call *call)
{
    return start_uneven(PLAN_REDUCE_SCATTER_V,
                        (call_buffers){.dst = dst, .listed = true, .lists[PLAN_SRC] = srcs},
                        (plan_shape){.counts = {counts, NULL}}, dtype, op, 0, comm, call);
}

ring_status ring_all_to_all_list(const void *const *srcs, const size_t *src_counts,
                                 void *const *dsts, const size_t *dst_counts, ring_dtype dtype,
                                 ring_comm *comm, const ring_call *call)
{
    return start_uneven(PLAN_ALL_TO_ALL_V,
                        (call_buffers){.listed = true,
                                       .lists[PLAN_SRC] = srcs,
                                       .lists[PLAN_DST] = (const void *const *)dsts},
                        (plan_shape){.counts = {src_counts, dst_counts}}, dtype, RING_SUM, 0, comm,
                        call);
}

ring_status ring_gather_list(const void *src, size_t count, void *const *dsts, const size_t *counts,
                             ring_dtype dtype, int root, ring_comm *comm, const ring_call *call)
{
    return start_uneven(
        PLAN_GATHER_V,
        (call_buffers){.src = src, .listed = true, .lists[PLAN_DST] = (const void *const *)dsts},
        (plan_shape){.own = count, .counts = {NULL, counts}}, dtype, RING_SUM, root, comm, call);
}

ring_status ring_scatter_list(const void *const *srcs, const size_t *counts, void *dst,
                              size_t count, ring_dtype dtype, int root, ring_comm *comm,
                              const ring_call *call)
{
    return start_uneven(PLAN_SCATTER_V,
                        (call_buffers){.dst = dst, .listed = true, .lists[PLAN_SRC] = srcs},
                        (plan_shape){.own = count, .counts = {counts, NULL}}, dtype, RING_SUM, root,
                        comm, call);
}
