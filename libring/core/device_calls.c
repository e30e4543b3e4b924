/* SPDX-License-Identifier: Apache-2.0
 * Seats of a communicator, and calls that accelerators run. */
#include "device_calls.h"

#include "accelerator_programs.h"
#include "mismatch.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a chunk for which another lane pays. */
enum { LANE_BYTES = 64 << 10 };

/* This rank's state in a communicator. */
struct device_calls {
    const accelerator *by;
    accelerator_seat *seat;
    accelerator_terms terms;
    bool aborted; /* and streams go on */
};

static const accelerator_programs *functions_of(const ring_comm *comm)
{
    return comm->device_calls->by->programs;
}

/* ---- Opening ------------------------------------------------------------------------------ */

static bool all_have_one(const ring_comm *comm)
{
    for (int r = 0; r < comm->ranks; r++)
        if (comm->world->cards[r].runs_programs == 0)
            return false;
    return comm->ranks > 1 && comm->plan_world.hosts == 1;
}

/* A rank's result and card in the exchange: a rank without a seat takes part, too. */
typedef struct seat_notice {
    int32_t status;
    accelerator_card card;
} seat_notice;

static ring_status first_failure(const seat_notice *notices, int ranks, const char *did)
{
    for (int r = 0; r < ranks; r++)
        if (notices[r].status != RING_OK)
            return fail((ring_status)notices[r].status, "rank %d could not %s", r, did);
    return RING_OK;
}

static ring_status exchange(ring_comm *comm, seat_notice *notices, ring_status mine)
{
    notices[comm->rank].status = (int32_t)mine;
    return call_all_gather(comm, notices, sizeof *notices);
}

/* The seat, and all that the others need to know of it. */
static ring_status sit(const ring_comm *comm, struct device_calls *d, accelerator_card *card)
{
    RING_TRY(d->by->programs->sit(d->by, comm->rank, comm->ranks, comm->settings.device_blocks,
                                  &d->seat, card));
    memcpy(card->process, comm->world->cards[comm->rank].process, sizeof card->process);
    return RING_OK;
}

static ring_status meet_all(struct device_calls *d, const seat_notice *notices, int ranks)
{
    accelerator_card *cards = malloc((size_t)ranks * sizeof *cards);
    if (cards == NULL)
        return fail(RING_ERR_MEMORY, "meeting the other GPUs");
    for (int r = 0; r < ranks; r++)
        cards[r] = notices[r].card;
    const ring_status status = d->by->programs->meet(d->seat, cards, &d->terms);
    free(cards);
    return status;
}

/* A rank that has no seat takes part in each exchange.
 * @param[out] why  RING_OK, or why this rank and all others go without seats.
 * @return how the exchanges went. */
static ring_status meet(ring_comm *comm, struct device_calls *d, seat_notice *notices,
                        ring_status *why)
{
    *why = sit(comm, d, &notices[comm->rank].card);
    RING_TRY(exchange(comm, notices, *why));
    if (*why == RING_OK)
        *why = first_failure(notices, comm->ranks, "take a seat");
    if (*why == RING_OK)
        *why = meet_all(d, notices, comm->ranks);
    RING_TRY(exchange(comm, notices, *why));
    if (*why == RING_OK)
        *why = first_failure(notices, comm->ranks, "reach the others");
    return RING_OK;
}

static void give_up(struct device_calls *d)
{
    if (d->seat != NULL)
        d->by->programs->leave(d->seat);
    free(d);
}

/* Before any run. No memory goes while another rank still reaches it; and its going waits for all
 * streams of the device, so that no rank's call may stand in one yet. */
static ring_status part(ring_comm *comm, struct device_calls *d, seat_notice *notices)
{
    if (d->seat != NULL)
        d->by->programs->part(d->seat);
    const ring_status status = exchange(comm, notices, RING_OK);
    give_up(d);
    return status == RING_OK ? exchange(comm, notices, RING_OK) : status;
}

ring_status device_calls_open(ring_comm *comm, const accelerator *a)
{
    ring_status why;
    if (a == NULL || a->programs == NULL || !all_have_one(comm))
        return RING_OK;
    seat_notice *notices = calloc((size_t)comm->ranks, sizeof *notices);
    struct device_calls *d = calloc(1, sizeof *d);
    if (notices == NULL || d == NULL) {
        free(notices);
        free(d);
        return fail(RING_ERR_MEMORY, "creating the communicator");
    }
    d->by = a;
    ring_status status = meet(comm, d, notices, &why);
    if (status == RING_OK && why != RING_OK)
        log_info("calls on GPUs are driven by the host: %s", fail_text());
    const bool parts = status != RING_OK || why != RING_OK;
    if (parts && status == RING_OK)
        status = part(comm, d, notices);
    else if (parts)
        give_up(d);
    free(notices);
    if (parts)
        return status;
    log_info("calls behind streams are run by %s, with at most %d blocks", a->name, d->terms.lanes);
    comm->device_calls = d; /* other threads see it from here on */
    return RING_OK;
}

void device_calls_close(ring_comm *comm)
{
    if (comm->device_calls != NULL)
        give_up(comm->device_calls);
    comm->device_calls = NULL;
}

/* ---- Programs ----------------------------------------------------------------------------- */

static bool is_of(const accelerator *a, const call_buffers *b)
{
    return (b->src_bytes == 0 || b->src_by == a) && (b->dst_bytes == 0 || b->dst_by == a);
}

/* Decides from facts that are equal on all ranks: all buffers are of accelerators, and behind
 * streams, or none is. */
static bool can_be_one(const prepared_call *c)
{
    const struct device_calls *d = c->comm->device_calls;
    const plan_facts *facts = c->program->facts;
    return d != NULL && c->options.stream != NULL && c->stream_of == d->by && !facts->pairwise &&
           !facts->uneven && c->buffers.products.scale == 1 && is_of(d->by, &c->buffers);
}

/* @param[out] captured  into a graph, which cannot run the program. */
static ring_status ask_captured(const prepared_call *c, bool *captured)
{
    const struct device_calls *d = c->comm->device_calls;
    *captured = false;
    return d->terms.captures ? RING_OK : d->by->captures(d->by, c->options.stream, captured);
}

ring_status device_call_choose(prepared_call *c)
{
    bool captured;
    if (!can_be_one(c))
        return RING_OK;
    RING_TRY(ask_captured(c, &captured));
    if (captured)
        return RING_OK;
    if (c->options.after != NULL)
        return fail(RING_ERR_UNSUPPORTED,
                    "ring_%s: a call that GPUs run waits for its stream alone: leave out "
                    "ring_call.after, or set RING_DEVICE_PROGRAMS=0",
                    c->program->facts->name);
    call_signature call = c->program->call;
    call.on_device = true;
    return programs_get(c->comm, &call, &c->program);
}

lowering_limits device_call_limits(const ring_comm *comm)
{
    const accelerator_terms *t = &comm->device_calls->terms;
    return (lowering_limits){.segment = t->segment,
                             .window = t->window,
                             .eager = t->eager,
                             .outstanding = t->outstanding,
                             .scratch = t->scratch,
                             .channels = t->lanes,
                             .per_channel = LANE_BYTES};
}

static int32_t operands_of(const program *p)
{
    const program_op *last = p->op_count > 0 ? &p->ops[p->op_count - 1] : NULL;
    const int32_t own = last == NULL ? 0 : last->kind == OP_WAIT ? 1 : last->ins + last->outs;
    return last != NULL ? (int32_t)last->first + own : 0;
}

/* Leaves a program without ops for the engine. */
static void leave_no_ops(program *p)
{
    p->op_count = p->peer_count = 0;
    p->channels = p->slices = 1;
    p->scratch = 0;
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
    leave_no_ops(p);
    return RING_OK;
}

/* ---- Runs --------------------------------------------------------------------------------- */

static double timeout_of(const prepared_call *c)
{
    return c->options.timeout > 0 ? c->options.timeout : c->comm->settings.timeout;
}

ring_status device_call_start(prepared_call *c, bool *captured)
{
    const struct device_calls *d = c->comm->device_calls;
    const accelerator_run run = {.kept = c->program->device,
                                 .src = c->buffers.src,
                                 .dst = c->buffers.dst,
                                 .stream = c->options.stream,
                                 .timeout = timeout_of(c)};
    RING_TRY(d->by->captures(d->by, run.stream, captured));
    if (*captured && (c->options.work != NULL || c->options.on_done != NULL))
        return fail(RING_ERR_UNSUPPORTED,
                    "ring_%s: its stream is captured into a graph: it has no work and no on_done, "
                    "for each replay makes it",
                    c->program->facts->name);
    const ring_status status = d->by->programs->start(d->seat, &run, *captured, &c->run);
    return status == RING_OK || status == RING_ERR_ABORTED
               ? status
               : fail(status, "ring_%s: %s", c->program->facts->name, fail_text());
}

static ring_status fail_by_verdict(const ring_comm *comm, const call_signature *call, uint64_t seq,
                                   const accelerator_verdict *v)
{
    if (v->status == RING_ERR_MISMATCH) {
        const call_signature theirs = signature_unpack(v->their_signature);
        return mismatch_differ(comm, call, seq, v->peer, &theirs, seq);
    }
    if (v->status == RING_ERR_TIMEOUT)
        return fail(v->status,
                    "not finished before its deadline (RING_TIMEOUT or ring_call.timeout), waiting "
                    "for rank %d (%s)",
                    v->peer, comm_host(comm, v->peer));
    return fail(v->status, "a call that GPUs run: %s", ring_status_string(v->status));
}

ring_status device_call_advance(work *w)
{
    const struct device_calls *d = w->comm->device_calls;
    accelerator_verdict v = {.status = RING_OK};
    bool waits;
    const ring_status status = d->by->programs->state(d->seat, w->run, &v, &waits);
    return status == RING_OK || status == RING_IN_PROGRESS
               ? status
               : fail_by_verdict(w->comm, &w->call, w->seq, &v);
}

bool device_call_is_timed(const work *w)
{
    const struct device_calls *d = w->comm->device_calls;
    accelerator_verdict v;
    bool waits = false;
    return w->program->device != NULL &&
           d->by->programs->state(d->seat, w->run, &v, &waits) == RING_IN_PROGRESS && !waits;
}

ring_status device_calls_check(const ring_comm *comm)
{
    const struct device_calls *d = comm->device_calls;
    accelerator_verdict v = {.status = RING_OK};
    bool waits;
    if (d == NULL || d->by->programs->state(d->seat, 0, &v, &waits) == RING_OK)
        return RING_OK;
    return fail(v.status, "a call of a graph: %s, by rank %d (%s)", ring_status_string(v.status),
                v.peer, comm_host(comm, v.peer));
}

void device_calls_abort(ring_comm *comm)
{
    struct device_calls *d = comm->device_calls;
    if (d == NULL || d->aborted)
        return;
    d->aborted = true;
    d->by->programs->abort(d->seat);
    d->by->programs->release(d->seat);
}

void device_calls_wake(ring_comm *comm)
{
    if (comm->device_calls != NULL && control_verdict(comm->world) != RING_OK)
        functions_of(comm)->abort(comm->device_calls->seat);
}
