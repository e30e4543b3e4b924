/* SPDX-License-Identifier: Apache-2.0
 * Hands calls to accelerators that run them as device programs: chooses the calls, hands over their
 * programs, and collects the results of their runs. */
#include "device_calls.h"

#include "call_group.h"
#include "device_pairs.h"
#include "device_proxy.h"
#include "lowering.h"
#include "mismatch.h"
#include "prepared.h"
#include "streams.h"

#include <stdlib.h>

/* Seconds that a call waits for ranks that share its accelerator. Ranks that call at the same time
 * are rarely further apart. */
static const double most_patience = 50e-6;

void device_calls_end(struct device_calls *d)
{
    device_proxy_free(d);
    if (d->seat != NULL)
        d->by->programs->detach(d->seat);
    free(d);
}

void device_calls_close(ring_comm *comm)
{
    if (comm->device_calls != NULL)
        device_calls_end(comm->device_calls);
    comm->device_calls = NULL;
}

/* ---- Programs ----------------------------------------------------------------------------- */

static bool is_of(const accelerator *a, const call_buffers *b)
{
    return (b->src_bytes == 0 || b->src_by == a) && (b->dst_bytes == 0 || b->dst_by == a);
}

/* A send to this rank itself needs a receive in its group. The host matches tags. */
static bool may_run_pair(const prepared_call *c)
{
    return !c->call.tagged && (!c->program->to_self || call_group_is_open());
}

/* All ranks must decide alike, so only facts that are equal on all of them count. The buffers of a
 * call must be in device memory on all ranks, or on none; a call without bytes has none. A barrier
 * without a stream orders the threads of the host alone: a stream that is stopped for it would hold
 * up cudaFree and the like, which programs separate from their calls by barriers. A graph cannot
 * keep lists of blocks, which are read at the call, but it can keep lists of messages. */
bool device_call_runs(const prepared_call *c)
{
    const struct device_calls *d = c->comm->device_calls;
    const plan_facts *facts = c->program->facts;
    const bool on_stream = c->options.stream != NULL, pairs = device_pairs_are(facts);
    if (d == NULL || (on_stream && c->stream_of != d->by) ||
        (c->captured && (!d->terms.captures || (has_list(&c->buffers) && !pairs))))
        return false;
    if (c->captured && d->proxy != NULL && c->comm->settings.progress == PROGRESS_NONE)
        return false;
    if (pairs && (!d->terms.captures || (facts->pairwise && !may_run_pair(c))))
        return false;
    return (on_stream || c->call.collective != PLAN_BARRIER) && is_of(d->by, &c->buffers);
}

ring_status device_call_refuse_capture(const prepared_call *c)
{
    const struct device_calls *d = c->comm->device_calls;
    const char *why = "GPUs do not run calls of this form, or with these buffers";
    if (d == NULL)
        why = "the GPUs of this communicator do not run calls themselves; RING_DEBUG=info reports "
              "why";
    else if (!d->terms.captures)
        why = "ranks of this communicator are threads that share a GPU";
    else if (d->proxy != NULL && c->comm->settings.progress == PROGRESS_NONE)
        why = "with RING_PROGRESS=none there is no thread to carry frames to other hosts";
    return fail(
        RING_ERR_UNSUPPORTED,
        "ring_%s: its stream is captured into a graph, but the host drives this call, and a "
        "graph cannot keep such calls (%s); make the call outside of the capture",
        c->program->facts->name, why);
}

lowering_limits device_call_limits(const ring_comm *comm)
{
    const accelerator_terms *t = &comm->device_calls->terms;
    return (lowering_limits){.segment = t->segment,
                             .window = t->window,
                             .eager = t->eager,
                             .outstanding = t->outstanding,
                             .scratch = t->scratch,
                             .channels = t->shape.lanes,
                             .per_channel = LANE_BYTES};
}

static int32_t operands_of(const program *p)
{
    const program_op *last = p->op_count > 0 ? &p->ops[p->op_count - 1] : NULL;
    const int32_t own = last == NULL ? 0 : last->kind == OP_WAIT ? 1 : last->ins + last->outs;
    return last != NULL ? (int32_t)last->first + own : 0;
}

ring_status device_call_keep(const ring_comm *comm, program *p)
{
    const struct device_calls *d = comm->device_calls;
    const accelerator_program theirs = {.ops = p->ops,
                                        .operands = p->operands,
                                        .peers = p->peers,
                                        .op_count = p->op_count,
                                        .operand_count = operands_of(p),
                                        .peer_count = p->peer_count,
                                        .slices = p->slices,
                                        .lanes = p->channels,
                                        .slice = p->slice,
                                        .segment = p->segment,
                                        .scratch = p->scratch,
                                        .signature = p->signature,
                                        .dtype = p->call.dtype,
                                        .op = p->call.op};
    RING_TRY(d->by->programs->keep(d->seat, &theirs, &p->device));
    p->device_of = d->by;
    p->op_count = p->peer_count = 0; /* the engine has no ops to run */
    p->channels = p->slices = 1;
    p->scratch = 0;
    return RING_OK;
}

/* ---- Runs --------------------------------------------------------------------------------- */

double device_call_patience(void)
{
    return call_group_is_paused() ? 0 : clock_now() + most_patience;
}

ring_status device_call_settle(const prepared_call *c, double until)
{
    const struct device_calls *d = c->comm->device_calls;
    return c->run > 0 ? d->by->programs->settle(d->seat, c->run, until) : RING_OK;
}

ring_status device_call_start(prepared_call *c, double until)
{
    if (device_pairs_are(c->program->facts))
        return device_pairs_start(c, c->next);
    const struct device_calls *d = c->comm->device_calls;
    const ring_call *o = &c->options;
    const plan_shape *shape = &c->program->shape;
    const size_t bytes = c->buffers.src_bytes + c->buffers.dst_bytes;
    const accelerator_run run = {.kept = c->program->device,
                                 .src = c->buffers.src,
                                 .dst = c->buffers.dst,
                                 .lists = {c->buffers.lists[PLAN_SRC], c->buffers.lists[PLAN_DST]},
                                 .places = {shape->displs[PLAN_SRC], shape->displs[PLAN_DST]},
                                 .stream = o->stream,
                                 .after_default = o->stream == NULL && bytes > 0,
                                 .gate = o->after != NULL ? &c->stop : NULL,
                                 .scale_at = c->buffers.products.at,
                                 .scale = c->buffers.products.scale,
                                 .holds = c->comm->settings.hold_streams,
                                 .timeout = work_timeout(c->comm, o),
                                 .until = until};
    RING_TRY(stream_check_capture(c));
    const ring_status status = d->by->programs->start(d->seat, &run, c->captured, &c->run);
    if (c->stop != NULL)
        stop_begin(c->stop, d->by, false);
    if (status == RING_OK && c->captured)
        device_proxy_stay(c->comm);
    if (status == RING_OK)
        return RING_OK;
    stop_drop(&c->stop);
    return status == RING_ERR_ABORTED
               ? status
               : fail(status, "ring_%s: %s", c->program->facts->name, fail_text());
}

/* @return the work to which the verdict belongs. It is in the first run in flight; in a run of
 * several receives it is the first one that differs from the peer's message. */
static const work *find_failed(const ring_comm *comm, const accelerator_verdict *v)
{
    const work *found = work_on_device_from(comm->works.first);
    for (const work *w = found; w != NULL; w = work_on_device_from(w->next)) {
        const bool same = w->stream.run == found->stream.run;
        if (work_run_is_before(w->stream.run, found->stream.run) ||
            (same && device_pairs_differ(w, v) && !device_pairs_differ(found, v)))
            found = w;
    }
    return found;
}

static ring_status fail_by_mismatch(const work *w, const accelerator_verdict *v)
{
    const ring_comm *comm = w->comm;
    const size_t theirs_count = v->their_bytes / ring_dtype_size(w->call.dtype);
    call_signature theirs = signature_unpack(v->their_signature);
    if (theirs.collective == PLAN_SEND && ring_dtype_size(theirs.dtype) > 0)
        theirs.count = v->their_bytes / ring_dtype_size(theirs.dtype);
    if (w->program->facts->pairwise)
        return mismatch_differ(comm, &w->call, w->seq, v->peer, &theirs, w->seq);
    if (device_pairs_are(w->program->facts) && w->signature == v->their_signature)
        return mismatch_of_length(w, v->peer, theirs_count, device_pairs_count(w, v->peer));
    return mismatch_collective(comm, w->seq, v->peer, &theirs, w->seq);
}

static ring_status fail_by_verdict(const ring_comm *comm, const accelerator_verdict *v)
{
    if (v->status == RING_ERR_MISMATCH)
        return fail_by_mismatch(find_failed(comm, v), v);
    if (v->status == RING_ERR_TIMEOUT)
        return fail(v->status,
                    "not finished before its deadline (RING_TIMEOUT or ring_call.timeout), waiting "
                    "for rank %d (%s)",
                    v->peer, comm_host(comm, v->peer));
    return fail(v->status, "a call that GPUs run failed: %s", ring_status_string(v->status));
}

/* @return true if no other call on a device has the same or a later run. */
static bool is_latest(const work *w)
{
    const work *other = work_on_device_from(w->comm->works.first);
    while (other != NULL && (other == w || work_run_is_before(other->stream.run, w->stream.run)))
        other = work_on_device_from(other->next);
    return other == NULL;
}

/* The latest call does not end before its last messages have left for other hosts. */
ring_status device_call_advance(work *w)
{
    const struct device_calls *d = w->comm->device_calls;
    accelerator_verdict v = {.status = RING_OK};
    int missing;
    const ring_status status = d->by->programs->state(d->seat, w->stream.run, &v, &missing);
    const channel *busy = status == RING_OK && d->proxy != NULL && is_latest(w)
                              ? device_proxy_busy(w->comm)
                              : NULL;
    if (busy != NULL) {
        w->wait.last = (channel *)(uintptr_t)busy; /* a deadline names this peer */
        return RING_IN_PROGRESS;
    }
    return status == RING_OK || status == RING_IN_PROGRESS ? status : fail_by_verdict(w->comm, &v);
}

int device_call_missing(const work *w)
{
    const struct device_calls *d = w->comm->device_calls;
    accelerator_verdict v;
    int missing = -1;
    if (w->call.on_device)
        (void)d->by->programs->state(d->seat, w->stream.run, &v, &missing);
    return missing;
}

bool device_call_is_timed(const work *w)
{
    const struct device_calls *d = w->comm->device_calls;
    accelerator_verdict v;
    int missing;
    return w->call.on_device &&
           d->by->programs->state(d->seat, w->stream.run, &v, &missing) == RING_IN_PROGRESS &&
           missing < 0;
}

void device_calls_collect(ring_comm *comm)
{
    const struct device_calls *d = comm->device_calls;
    accelerator_verdict v = {.status = RING_OK};
    int missing;
    if (d == NULL || comm->works.first != NULL || !comm_is_fine(comm) ||
        d->by->programs->state(d->seat, 0, &v, &missing) == RING_OK)
        return;
    (void)fail(v.status, "a call in a graph failed: %s, at rank %d (%s)",
               ring_status_string(v.status), v.peer, comm_host(comm, v.peer));
    comm_fail(comm, NULL, v.status);
}

void device_calls_abort(ring_comm *comm)
{
    struct device_calls *d = comm->device_calls;
    if (d == NULL || d->released)
        return;
    d->by->programs->abort(d->seat);
    if (streams_stay(comm))
        return;
    d->released = true;
    d->by->programs->release(d->seat);
}

void device_calls_wake(ring_comm *comm)
{
    const struct device_calls *d = comm->device_calls;
    if (d != NULL && control_verdict(comm->world) != RING_OK)
        d->by->programs->abort(d->seat);
}
