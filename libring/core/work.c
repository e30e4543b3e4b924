/* SPDX-License-Identifier: Apache-2.0
 * The life of a work: from the pool, through its lane's queue, back to the pool. */
#include "comm.h"

#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ring_work *work_new(ring_comm *comm)
{
    ring_work *work = calloc(1, sizeof *work);
    if (work == NULL)
        return NULL;
    work->comm = comm;
    work->peers = calloc((size_t)comm->ranks, sizeof *work->peers);
    if (work->peers == NULL) {
        free(work);
        return NULL;
    }
    work->sibling = comm->works;
    comm->works = work;
    return work;
}

static ring_work *take_from_pool(ring_comm *comm)
{
    ring_work *work = comm->pool;
    if (work == NULL)
        return work_new(comm);
    comm->pool = work->next;
    return work;
}

static void append(work_queue *queue, ring_work *work)
{
    if (queue->first == NULL)
        queue->end = &queue->first;
    *queue->end = work;
    queue->end = &work->next;
    work->next = NULL;
}

void work_finish(ring_work **at, ring_status status)
{
    ring_work *work = *at;
    work_queue *queue = &work->comm->queue[work->lane];
    *at = work->next;
    if (queue->end == &work->next)
        queue->end = at;
    work->status = status;
    work->finished = true;
}

static enum transport_lane lane_of(plan_collective collective)
{
    return collective == PLAN_SEND || collective == PLAN_RECV ? TRANSPORT_POINT_TO_POINT
                                                              : TRANSPORT_COLLECTIVE;
}

static uint64_t next_seq(ring_comm *comm, const call_signature *call)
{
    if (call->collective == PLAN_SEND)
        return comm->peers[call->root].sends++;
    if (call->collective == PLAN_RECV)
        return comm->peers[call->root].recvs++;
    return comm->calls++;
}

/* Between a pair, "root" would be the other end for each; both say 0. */
static call_signature signature_on_wire(const call_signature *call)
{
    call_signature wire = *call;
    if (lane_of(call->collective) == TRANSPORT_POINT_TO_POINT)
        wire.root = 0;
    return wire;
}

/* Chunk 0 is the longest there is, so all ranks count alike. */
static void set_slices(ring_work *work)
{
    const plan_buffer whole = work->call.collective == PLAN_ALL_GATHER ? PLAN_DST : PLAN_SRC;
    const size_t longest = plan_span_of(&work->layout, whole, 0).count;
    work->slice = 0;
    work->slices = 1;
    work->slice_elements = SIZE_MAX;
    if (!work->plan->circular)
        return;
    work->slice_elements = TRANSPORT_WINDOW * work->segment;
    if (longest > 0)
        work->slices = (int32_t)((longest + work->slice_elements - 1) / work->slice_elements);
}

static void reset(ring_work *work, const call_signature *call, const call_buffers *buffers,
                  double timeout)
{
    ring_comm *comm = work->comm;
    work->lane = lane_of(call->collective);
    work->seq = next_seq(comm, call);
    work->call = signature_on_wire(call);
    work->src = buffers->src;
    work->dst = buffers->dst;
    work->dst_bytes = buffers->dst_bytes;
    work->element = ring_dtype_size(call->dtype);
    work->acc = kernel_acc_size(call->dtype);
    work->segment = TRANSPORT_SEGMENT / work->acc;
    work->layout = (plan_layout){.collective = call->collective, .ranks = comm->ranks,
                                 .chunks = work->plan->chunks, .count = call->count};
    set_slices(work);
    work->cursor = plan_begin(work->plan);
    work->position = 0;
    work->queue_first = work->queue_end = 0;
    memset(work->peers, 0, (size_t)comm->ranks * sizeof *work->peers);
    work->waits_for = -1;
    work->deadline = clock_now() + (timeout > 0 ? timeout : comm->settings.timeout);
    work->finished = work->idle = false;
    work->status = RING_IN_PROGRESS;
}

/* Between a pair there is no choice: no algorithm. */
static ring_status choose(ring_comm *comm, const call_signature *call, tuner_choice *choice)
{
    *choice = (tuner_choice){.algorithm = NULL, .chunks = 1};
    if (lane_of(call->collective) == TRANSPORT_POINT_TO_POINT)
        return RING_OK;
    const size_t blocks = (size_t)plan_blocks(call->collective, comm->ranks);
    return tuner_choose(comm->tuner, call->collective,
                        call->count * blocks * ring_dtype_size(call->dtype), choice);
}

ring_status work_start(ring_comm *comm, const call_signature *call, const call_buffers *buffers,
                       double timeout, ring_work **out)
{
    tuner_choice choice;
    const plan *p;
    RING_TRY(choose(comm, call, &choice));
    RING_TRY(plans_get(comm->plans, comm, call, &choice, &p));
    ring_work *work = take_from_pool(comm);
    if (work == NULL)
        return fail(RING_ERR_MEMORY, "starting %s", plan_collective_name(call->collective));
    work->plan = p;
    reset(work, call, buffers, timeout);
    if (choice.algorithm != NULL) {
        comm->algorithm = choice.algorithm->name;
        comm->latest = *call;
    }
    append(&comm->queue[work->lane], work);
    comm->stall.moves += work->lane == TRANSPORT_COLLECTIVE;
    *out = work;
    return RING_OK;
}

void work_recycle(ring_work *work)
{
    ring_comm *comm = work->comm;
    work->idle = true;
    work->next = comm->pool;
    comm->pool = work;
}

/* ---- When the communicator goes ---------------------------------------------------- */

/* What its caller still holds keeps the answer to ring_wait(). */
static void abandon(ring_work *work)
{
    free(work->queue);
    free(work->peers);
    if (work->idle) {
        free(work);
        return;
    }
    if (!work->finished)
        work->status = RING_ERR_ABORTED;
    work->comm = NULL;
}

void work_free_all(ring_comm *comm)
{
    ring_work *next;
    for (ring_work *work = comm->works; work != NULL; work = next) {
        next = work->sibling;
        abandon(work);
    }
}

ring_status work_end_orphan(ring_work *work)
{
    const ring_status status = work->status;
    free(work);
    return status == RING_OK ? status : fail(status, "the communicator was destroyed before the "
                                             "call ended");
}

/* ---- Operands ---------------------------------------------------------------- */

plan_span work_span(const ring_work *work, plan_buffer buffer, int chunk)
{
    const plan_buffer place = buffer == PLAN_WIRE ? PLAN_SRC : buffer;
    const plan_span whole = plan_span_of(&work->layout, place, chunk);
    const size_t skip = min_size(whole.count, (size_t)work->slice * work->slice_elements);
    return (plan_span){whole.offset + skip, min_size(whole.count - skip, work->slice_elements)};
}

void *work_address(const ring_work *work, plan_buffer buffer, int chunk)
{
    const char *base = buffer == PLAN_SRC ? work->src : work->dst;
    return (void *)(uintptr_t)(base + work_span(work, buffer, chunk).offset * work->element);
}

size_t work_chunk_count(const ring_work *work, plan_buffer buffer, int chunk)
{
    return work_span(work, buffer, chunk).count;
}

/* ---- Text ---------------------------------------------------------------------- */

void work_describe(const call_signature *call, uint64_t seq, char *out, size_t size)
{
    const char *name = plan_collective_name(call->collective);
    int used = snprintf(out, size, "%s #%llu", name, (unsigned long long)seq);
    if (call->collective == PLAN_BARRIER || used < 0 || (size_t)used >= size)
        return;
    used += snprintf(out + used, size - (size_t)used, " (count %zu, %s", call->count,
                     ring_dtype_name(call->dtype));
    if (plan_reduces(call->collective) && (size_t)used < size)
        used += snprintf(out + used, size - (size_t)used, ", %s", ring_op_name(call->op));
    if (call_has_root(call) && (size_t)used < size)
        used += snprintf(out + used, size - (size_t)used, ", root %d", call->root);
    if ((size_t)used < size)
        snprintf(out + used, size - (size_t)used, ")");
}
