/* SPDX-License-Identifier: Apache-2.0
 * Lowers the steps of a plan to the ops of a program in two passes: the first counts ops and
 * operands, the second writes them. */
#include "lowering.h"

#include "kernels.h"
#include "shape.h"

#include <stdlib.h>

_Static_assert(OP_SEND == (int)PLAN_STEP_SEND && OP_RECV == (int)PLAN_STEP_RECV &&
                   OP_COPY == (int)PLAN_STEP_COPY && OP_FOLD == (int)PLAN_STEP_FOLD &&
                   OP_WAIT == (int)PLAN_STEP_WAIT,
               "ops have the numbers of steps");
_Static_assert(OPERAND_SRC == (int)PLAN_SRC && OPERAND_DST == (int)PLAN_DST &&
                   OPERAND_WIRE == (int)PLAN_WIRE && OPERAND_SCRATCH == (int)PLAN_SCRATCH,
               "operands' buffers have the numbers of plans' buffers");

typedef struct lowering {
    const lowering_limits *limits;
    const plan *plan;
    plan_layout layout;
    size_t element, acc;
    program *p; /* ops, operands and peers are NULL while counting */
    int32_t ops, operands;
    bool by_chunk; /* a step over several chunks becomes one op for each chunk, because the slices
                      of several chunks are not contiguous */
    bool skips_empty; /* see lowering_limits */
    bool multiplies;  /* the first ops multiply src, and the others use the products, which follow
                         the partial sums in the scratch memory */
    size_t products, stride; /* offset of the products, and bytes of those of a chunk */
} lowering;

/* ---- Operands ----------------------------------------------------------------------- */

static int32_t peer_index(const plan *p, int32_t rank)
{
    int32_t low = 0, high = p->peer_count;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (p->peers[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* @return true if the operand holds partial sums in the accumulator's type. @param partner  the
 * other operand of a send, recv or copy; NULL in a fold. */
static bool is_accumulator(const plan_loc *loc, const plan_loc *partner)
{
    if (loc->buffer == PLAN_SCRATCH)
        return true;
    if (loc->buffer != PLAN_WIRE)
        return false;
    return loc->wire == PLAN_WIRE_ACC || (partner != NULL && partner->buffer == PLAN_SCRATCH);
}

static void place_operand(const lowering *low, const plan_loc *loc, operand *at)
{
    const int32_t first = low->plan->scratch_first;
    plan_span span = {0};
    if (loc->buffer == PLAN_SRC && low->multiplies) {
        at->buffer = OPERAND_SCRATCH;
        at->offset = low->products + (size_t)loc->chunk * low->stride;
        return;
    }
    if (loc->buffer == PLAN_SCRATCH && low->p->slices > 1)
        /* The scratch memory of a sliced program holds only one slice of each chunk. */
        span.offset = (size_t)(loc->chunk - first) * low->p->slice;
    else if (loc->buffer == PLAN_SCRATCH)
        span.offset = plan_span_of(&low->layout, PLAN_SCRATCH, loc->chunk, 1).offset -
                      plan_span_of(&low->layout, PLAN_SCRATCH, first, 1).offset;
    else if (loc->buffer != PLAN_WIRE)
        span = plan_span_of(&low->layout, (plan_buffer)loc->buffer, loc->chunk, loc->chunks);
    at->offset = span.offset * at->width;
    at->block = (int32_t)span.block;
}

static void add_operand(lowering *low, const plan_loc *loc, const plan_loc *partner, bool out)
{
    const int32_t index = low->operands++;
    if (low->p->operands == NULL)
        return;
    operand *at = &low->p->operands[index];
    *at = (operand){.peer = OPERAND_LOCAL,
                    .buffer = loc->buffer,
                    .finish = out && loc->finish,
                    .accumulator = is_accumulator(loc, partner)};
    at->width = (uint8_t)(at->accumulator ? low->acc : low->element);
    place_operand(low, loc, at);
    if (loc->rank == low->plan->rank)
        return;
    at->peer = peer_index(low->plan, loc->rank);
    program_peer *peer = &low->p->peers[at->peer];
    at->message = out ? peer->sends++ : peer->recvs++;
}

/* ---- Steps ----------------------------------------------------------------------- */

/* @return the operand's chunks [from, from + chunks). */
static plan_loc piece_of(plan_loc loc, int32_t from, int32_t chunks)
{
    loc.chunk += from;
    loc.chunks = chunks;
    return loc;
}

static program_op *add_op(lowering *low, const plan_step *step)
{
    static program_op counted;
    program_op *o = low->p->ops != NULL ? &low->p->ops[low->ops] : &counted;
    low->ops++;
    if (low->p->ops != NULL)
        *o = (program_op){.kind = step->kind,
                          .eager = step->eager,
                          .ins = (uint16_t)step->ins,
                          .outs = (uint16_t)step->outs,
                          .first = (uint32_t)low->operands};
    return o;
}

static void lower_piece(lowering *low, const plan_cursor *at, const plan_step *step, int32_t from,
                        int32_t chunks)
{
    plan_loc first_in = piece_of(plan_input(at, step, 0), from, chunks);
    const bool in_vector = first_in.buffer == PLAN_SRC || first_in.buffer == PLAN_DST;
    const plan_buffer place = in_vector ? (plan_buffer)first_in.buffer : PLAN_WIRE;
    const size_t count = plan_span_of(&low->layout, place, first_in.chunk, chunks).count;
    if (count == 0 && low->skips_empty)
        return;
    program_op *o = add_op(low, step);
    first_in = plan_input(at, step, 0);
    const plan_loc first_out = plan_output(at, step, 0);
    const bool fold = step->kind == PLAN_STEP_FOLD;
    for (int i = 0; i < step->ins; i++) {
        const plan_loc loc = piece_of(plan_input(at, step, i), from, chunks);
        add_operand(low, &loc, fold ? NULL : &first_out, false);
    }
    for (int i = 0; i < step->outs; i++) {
        const plan_loc loc = piece_of(plan_output(at, step, i), from, chunks);
        add_operand(low, &loc, fold ? NULL : &first_in, true);
    }
    if (low->p->ops != NULL)
        o->count = count;
}

static void lower_wait(lowering *low, const plan_step *step)
{
    program_op *o = add_op(low, step);
    const int32_t index = low->operands++;
    if (low->p->ops == NULL)
        return;
    const int32_t peer = peer_index(low->plan, step->peer);
    const uint32_t sent = low->p->peers[peer].sends, back = (uint32_t)step->back;
    low->p->operands[index] = (operand){.peer = peer};
    o->messages = sent > back ? sent - back : 0;
}

static void lower_step(lowering *low, const plan_cursor *at)
{
    const plan_step *step = plan_at(at);
    if (step->kind == PLAN_STEP_WAIT) {
        lower_wait(low, step);
        return;
    }
    const int32_t chunks = plan_input(at, step, 0).chunks;
    if (!low->by_chunk) {
        lower_piece(low, at, step, 0, chunks);
        return;
    }
    for (int32_t i = 0; i < chunks; i++)
        lower_piece(low, at, step, i, 1);
}

/* Adds an op for each chunk of src. They are the first of a slice, so src may be overwritten by
 * results as soon as the plan allows that. */
static void lower_products(lowering *low)
{
    for (int32_t chunk = 0; chunk < low->plan->chunks; chunk++) {
        const int32_t op = low->ops++, at = low->operands;
        low->operands += 2;
        if (low->p->ops == NULL)
            continue;
        const plan_span span = plan_span_of(&low->layout, PLAN_SRC, chunk, 1);
        const operand in = {.peer = OPERAND_LOCAL,
                            .buffer = OPERAND_SRC,
                            .width = (uint8_t)low->element,
                            .block = (int32_t)span.block,
                            .offset = span.offset * low->element};
        low->p->ops[op] = (program_op){
            .kind = OP_SCALE, .ins = 1, .outs = 1, .first = (uint32_t)at, .count = span.count};
        low->p->operands[at] = low->p->operands[at + 1] = in;
        low->p->operands[at + 1].buffer = OPERAND_SCRATCH;
        low->p->operands[at + 1].offset = low->products + (size_t)chunk * low->stride;
    }
}

static void lower_steps(lowering *low)
{
    low->ops = low->operands = 0;
    if (low->multiplies && low->p->src_here)
        lower_products(low);
    for (plan_cursor at = plan_begin(low->plan); plan_at(&at) != NULL; plan_next(&at))
        lower_step(low, &at);
}

/* ---- Slices ----------------------------------------------------------------------- */

/* A message that is carried through shared memory is cut into two frames, so that one rank copies
 * the second frame while the other folds the first. On a network the transfer takes longer than
 * copying and folding, so the message is cut only into segments. @return bytes of a frame. */
static size_t segment_bytes(const lowering *low, size_t message)
{
    enum { FRAMES = 2, LEAST = 8192 };
    const size_t part = (message / FRAMES + LEAST - 1) / LEAST * LEAST;
    if (!low->limits->few_frames)
        return low->limits->segment;
    return min_size(max_size(part, LEAST), low->limits->segment);
}

/* @return the most chunks that a plan sends to one peer if it sends each chunk once. These are all
 * chunks, but only those of one block if each block is for one rank. */
static size_t chunks_to_peer(const lowering *low)
{
    const plan *p = low->plan;
    return (size_t)(low->p->facts->personalized ? p->chunks / plan_blocks(p->collective, p->ranks)
                                                : p->chunks);
}

/* Products begin at a multiple of this, and so does the scratch memory of each lane that has them.
 */
enum { SCRATCH_UNIT = 16 };

static size_t scratch_units(size_t bytes)
{
    return (bytes + SCRATCH_UNIT - 1) / SCRATCH_UNIT * SCRATCH_UNIT;
}

/* @return the most elements of a chunk in a slice. All ranks compute the same limit, because a plan
 * is circular, keeps sums or sends eagerly either on all ranks or on none. */
static size_t slice_limit(const lowering *low, const algo *a, size_t longest)
{
    const size_t chunks = (size_t)low->plan->chunks;
    const size_t channels = (size_t)low->p->channels;
    size_t limit = channels > 1 ? (longest + channels - 1) / channels : SIZE_MAX;
    if (low->plan->circular)
        limit = min_size(limit, low->limits->window * low->p->segment);
    const bool keeps_sums = a != NULL && (a->keeps_sums & 1u << low->plan->collective) != 0;
    const size_t kept = (keeps_sums ? low->acc : 0) + (low->multiplies ? low->element : 0);
    const size_t gaps = low->multiplies ? 2 * SCRATCH_UNIT : 0;
    if (kept > 0)
        limit = min_size(limit, (low->limits->scratch / channels - gaps) / kept / chunks);
    if (a != NULL && a->eager)
        limit = min_size(limit, low->limits->eager / low->acc / chunks_to_peer(low));
    /* A plan sends a chunk to a peer at most twice: its partial sum and its result. */
    if (low->limits->outstanding != SIZE_MAX)
        limit = min_size(limit, low->limits->outstanding / low->acc / chunks_to_peer(low) / 2);
    return max_size(limit, 1);
}

/* Chunk 0 is the longest chunk of even blocks, so all ranks compute the same number of slices.
 * v-forms in which only two ranks know a count have one slice. A call gets an additional channel
 * only if each channel has per_channel bytes to move. */
static void set_slices(lowering *low, const algo *a)
{
    program *p = low->p;
    const size_t longest = plan_span_of(&low->layout, PLAN_WIRE, 0, 1).count;
    const bool unknown = p->facts->uneven && p->facts->personalized;
    p->segment = segment_bytes(low, unknown ? SIZE_MAX : longest * low->acc) / low->acc;
    const size_t worth = longest * low->element / low->limits->per_channel;
    p->channels = (int32_t)max_size(1, min_size(worth, (size_t)low->limits->channels));
    if (p->to_self || p->call.tagged)
        p->channels = 1;
    p->slice = slice_limit(low, a, longest);
    p->slices = longest > p->slice ? (int32_t)((longest + p->slice - 1) / p->slice) : 1;
    p->channels = p->slices < p->channels ? p->slices : p->channels;
    p->scratch = low->acc * (size_t)low->plan->scratch_chunks * min_size(p->slice, longest);
    if (low->multiplies) {
        low->products = scratch_units(p->scratch);
        low->stride = low->element * min_size(p->slice, longest);
        p->scratch = scratch_units(low->products + (size_t)low->plan->chunks * low->stride);
    }
    low->by_chunk = p->slices > 1 || low->multiplies;
    if (p->slices == 1) /* an op may be a range of chunks, longer than one chunk */
        p->slice = SIZE_MAX;
}

static bool allocate(program *p, const plan *of, int32_t ops, int32_t operands)
{
    p->ops = malloc((size_t)ops * sizeof *p->ops + 1);
    p->operands = malloc((size_t)operands * sizeof *p->operands + 1);
    const size_t peers = (size_t)of->peer_count, channels = peers * (size_t)p->channels;
    p->peers = calloc(peers + 1, sizeof *p->peers);
    p->on = calloc(channels + 1, sizeof(channel *));
    p->op_count = ops;
    p->peer_count = of->peer_count;
    p->memory = sizeof *p + (size_t)ops * sizeof *p->ops + (size_t)operands * sizeof *p->operands +
                peers * sizeof *p->peers + channels * sizeof *p->on + shape_bytes(p, of->ranks);
    return p->ops != NULL && p->operands != NULL && p->peers != NULL && p->on != NULL;
}

ring_status program_lower(const lowering_limits *limits, const plan *of, const algo *a, program *p)
{
    lowering low = {.limits = limits,
                    .plan = of,
                    .p = p,
                    .element = ring_dtype_size(p->call.dtype),
                    .acc = kernel_acc_size(p->call.dtype),
                    .skips_empty = limits->skips_empty && p->facts->uneven &&
                                   p->facts->personalized,
                    .multiplies = p->call.on_device && p->facts->reduces &&
                                  p->call.op == RING_PREMUL_SUM};
    low.layout = (plan_layout){.collective = of->collective,
                               .ranks = of->ranks,
                               .chunks = of->chunks,
                               .count = p->call.count};
    set_slices(&low, a);
    low.layout.shape = p->call.shape;
    lower_steps(&low);
    if (!allocate(p, of, low.ops, low.operands))
        return fail(RING_ERR_MEMORY, "out of memory while lowering the plan of %s for %d rank%s",
                    plan_collective_name(of->collective), of->ranks, plural(of->ranks));
    for (int32_t i = 0; i < of->peer_count; i++)
        p->peers[i].rank = of->peers[i].rank;
    lower_steps(&low);
    for (int32_t i = p->op_count - 1; i >= 0 && p->ops[i].kind == PLAN_STEP_WAIT; i--)
        p->ops[i].trailing = true;
    return RING_OK;
}
