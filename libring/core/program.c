/* SPDX-License-Identifier: Apache-2.0
 * Creates a program: checks the call's arguments, finds or builds its plan, and lowers it. */
#include "program.h"

#include "accelerator_programs.h"
#include "channel_table.h"
#include "device_calls.h"
#include "device_pairs.h"
#include "kernels.h"
#include "lowering.h"
#include "scratch.h"
#include "shape.h"
#include "shared_plan.h"
#include "tuner.h"

#include <stdlib.h>
#include <string.h>

/* ---- Programs ----------------------------------------------------------------------- */

void program_free(program *p)
{
    if (p->device != NULL)
        p->device_of->programs->drop(p->device);
    plans_drop(p->from);
    free(p->ops);
    free(p->operands);
    free(p->peers);
    free(p->on);
    free(p->room);
    free(p);
}

static ring_status find_channels(ring_comm *comm, const plan *of, program *p)
{
    const enum channel_traffic traffic = p->call.tagged       ? TRAFFIC_GRANTED
                                         : p->facts->pairwise ? TRAFFIC_PAIR
                                                              : TRAFFIC_COLLECTIVE;
    for (int32_t index = 0; index < p->channels; index++)
        for (int32_t i = 0; i < p->peer_count; i++)
            RING_TRY(channel_get(comm, traffic, index, of->peers[i].rank,
                                 &p->on[(ptrdiff_t)index * p->peer_count + i]));
    return RING_OK;
}

/* @return the limits for calls that the host drives. */
static lowering_limits limits_of(const ring_comm *comm)
{
    const int set = comm->settings.channels, rails = comm->links.over_rails ? -set : 1;
    return (lowering_limits){.segment = TRANSPORT_SEGMENT,
                             .few_frames = comm->links.maps_all,
                             .window = TRANSPORT_WINDOW,
                             .eager = EAGER_BYTES,
                             .outstanding = SIZE_MAX,
                             .scratch = SCRATCH_MOST,
                             .channels = set > 0 ? set : rails,
                             .skips_empty = device_pairs_run(comm),
                             .per_channel = TRANSPORT_SEGMENT};
}

/* ---- Arguments, which are checked once per program -------------------------------------- */

static ring_status check_types(const call_signature *call, const plan_facts *facts)
{
    if (ring_dtype_size(call->dtype) == 0)
        return fail(RING_ERR_ARGUMENT, "ring_%s: unknown dtype %d", facts->name, (int)call->dtype);
    if (facts->reduces && (unsigned)call->op >= RING_OP_COUNT)
        return fail(RING_ERR_ARGUMENT, "ring_%s: unknown op %d", facts->name, (int)call->op);
    if (facts->reduces && !ring_op_serves(call->op, call->dtype))
        return fail(RING_ERR_ARGUMENT, "ring_%s: %s is for %s, not for %s", facts->name,
                    ring_op_name(call->op), call->op == RING_PREMUL_SUM ? "floats" : "integers",
                    ring_dtype_name(call->dtype));
    if (facts->result == PLAN_PREFIX && call->op == RING_AVG)
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: avg is not defined for scans; use sum, then divide", facts->name);
    return RING_OK;
}

/* @param blocks  the vector has a block of `count` elements for each rank, else one block.
 * @param[out] bytes  the size of the vector. */
static ring_status vector_bytes(const program *p, bool blocks, const ring_comm *comm, size_t *bytes)
{
    size_t elements;
    if (mul_size(p->call.count, blocks ? (size_t)comm->ranks : 1, &elements) &&
        mul_size(elements, ring_dtype_size(p->call.dtype), bytes) && *bytes <= PTRDIFF_MAX)
        return RING_OK;
    return fail(RING_ERR_ARGUMENT, "ring_%s: count %zu is more than memory can hold",
                p->facts->name, p->call.count);
}

static ring_status bind_even(program *p, const ring_comm *comm)
{
    size_t block;
    RING_TRY(vector_bytes(p, p->facts->src_blocks, comm, &p->src_bytes));
    RING_TRY(vector_bytes(p, p->facts->dst_blocks, comm, &p->dst_bytes));
    RING_TRY(vector_bytes(p, false, comm, &block));
    p->block = (size_t)comm->rank * block;
    p->longest = p->call.count;
    return RING_OK;
}

static ring_status bind_call(program *p, const ring_comm *comm)
{
    const bool is_root = p->call.root == comm->rank;
    RING_TRY(check_types(&p->call, p->facts));
    if ((p->facts->rooted || p->facts->pairwise) &&
        (p->call.root < 0 || p->call.root >= comm->ranks))
        return fail(RING_ERR_ARGUMENT, "ring_%s: %s is %d; the communicator has ranks 0 to %d",
                    p->facts->name, p->facts->pairwise ? "peer" : "root", p->call.root,
                    comm->ranks - 1);
    p->to_self = p->facts->pairwise && is_root;
    p->src_here = plan_is_on(p->facts->src_at, comm->rank, p->call.root);
    p->dst_here = plan_is_on(p->facts->dst_at, comm->rank, p->call.root);
    return p->facts->uneven ? shape_bind(p, comm->ranks) : bind_even(p, comm);
}

/* ---- Creation ----------------------------------------------------------------------------- */

/* @param kept  programs, linked by `older`, whose plan may serve this call, too. */
static ring_status find_plan(const ring_comm *comm, const program *kept, const call_signature *call,
                             const tuner_choice *choice, shared_plan **out)
{
    while (kept != NULL && !plans_serve(kept->from, call, choice))
        kept = kept->older;
    if (kept == NULL)
        return plans_build(comm, call, choice, out);
    kept->from->holders++;
    *out = kept->from;
    return RING_OK;
}

static bool has_no_bytes(const program *p)
{
    return (p->src_bytes == 0 || !p->src_here) && (p->dst_bytes == 0 || !p->dst_here);
}

static ring_status build(ring_comm *comm, const program *kept, program *p)
{
    size_t algorithms;
    RING_TRY(bind_call(p, comm));
    const size_t bytes = signature_bytes(&p->call, comm->ranks);
    tuner_choice choice = {.algorithm = NULL, .chunks = 1, .eager = bytes <= EAGER_BYTES};
    if (!p->facts->pairwise) /* send and recv have no algorithm */
        RING_TRY(tuner_choose(comm->tuner, &p->call, &choice));
    RING_TRY(find_plan(comm, kept, &p->call, &choice, &p->from));
    const plan *of = p->from->plan;
    const call_way way = {.chunks = choice.chunks,
                          .algorithm = choice.algorithm != NULL
                                           ? (int)(choice.algorithm - algo_all(&algorithms))
                                           : 0};
    p->algorithm = of->algorithm;
    p->signature = signature_pack(&p->call, &way);
    const bool pairs = device_pairs_are(p->facts) && device_pairs_run(comm);
    if (pairs && p->facts->uneven && has_no_bytes(p))
        p->signature = signature_of_idle(p->signature);
    if (p->call.on_device && pairs)
        return device_pairs_keep(comm, p);
    const lowering_limits limits = p->call.on_device ? device_call_limits(comm) : limits_of(comm);
    RING_TRY(program_lower(&limits, of, choice.algorithm, p));
    return p->call.on_device ? device_call_keep(comm, p) : find_channels(comm, of, p);
}

ring_status program_new(ring_comm *comm, const program *kept, const call_signature *call,
                        program **out)
{
    program *p = calloc(1, sizeof *p);
    if (p == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while starting %s",
                    plan_collective_name(call->collective));
    p->call = *call;
    p->facts = plan_facts_of(call->collective);
    const ring_status status = build(comm, kept, p);
    if (status == RING_OK)
        *out = p;
    else
        program_free(p);
    return status;
}
