/* SPDX-License-Identifier: Apache-2.0
 * Lowering: steps become ops, once to count them and once to write them. */
#include "comm.h"

#include "kernels.h"
#include "shape.h"

#include <stdlib.h>
#include <string.h>

typedef struct lowering {
    const ring_comm *comm;
    const plan *plan;
    plan_layout layout;
    size_t element, acc;
    program *p; /* ops, operands and peers are NULL while counting */
    int32_t ops, operands;
    bool by_chunk; /* ranges are cut: a slice of one has holes */
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

static bool is_accumulator(const plan_loc *loc, const plan_loc *partner)
{
    if (loc->buffer == PLAN_SCRATCH)
        return true;
    if (loc->buffer != PLAN_WIRE)
        return false;
    return loc->wire == PLAN_WIRE_ACC || (partner != NULL && partner->buffer == PLAN_SCRATCH);
}

/* Scratch memory of a sliced program has a slice of each chunk. */
static size_t scratch_offset(const lowering *low, int32_t chunk)
{
    const plan *p = low->plan;
    if (low->p->slices > 1)
        return (size_t)(chunk - p->scratch_first) * low->p->slice;
    return plan_span_of(&low->layout, PLAN_SCRATCH, chunk, 1).offset -
           plan_span_of(&low->layout, PLAN_SCRATCH, p->scratch_first, 1).offset;
}

static void place_operand(const lowering *low, const plan_loc *loc, operand *at)
{
    plan_span span = {0};
    if (loc->buffer == PLAN_SCRATCH)
        span.offset = scratch_offset(low, loc->chunk);
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

/* One chunk, or a range, of each operand: @p from chunks into it. */
static plan_loc piece_of(plan_loc loc, int32_t from, int32_t chunks)
{
    loc.chunk += from;
    loc.chunks = chunks;
    return loc;
}

static size_t count_of(const lowering *low, const plan_loc *loc)
{
    const plan_buffer place = loc->buffer == PLAN_SRC || loc->buffer == PLAN_DST
                                  ? (plan_buffer)loc->buffer
                                  : PLAN_WIRE;
    return plan_span_of(&low->layout, place, loc->chunk, loc->chunks).count;
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
    program_op *o = add_op(low, step);
    plan_loc first_in = plan_input(at, step, 0), first_out = plan_output(at, step, 0);
    const bool fold = step->kind == PLAN_STEP_FOLD;
    for (int i = 0; i < step->ins; i++) {
        const plan_loc loc = piece_of(plan_input(at, step, i), from, chunks);
        add_operand(low, &loc, fold ? NULL : &first_out, false);
    }
    for (int i = 0; i < step->outs; i++) {
        const plan_loc loc = piece_of(plan_output(at, step, i), from, chunks);
        add_operand(low, &loc, fold ? NULL : &first_in, true);
    }
    first_in = piece_of(first_in, from, chunks);
    if (low->p->ops != NULL)
        o->count = count_of(low, &first_in);
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

static void lower_steps(lowering *low)
{
    low->ops = low->operands = 0;
    for (plan_cursor at = plan_begin(low->plan); plan_at(&at) != NULL; plan_next(&at))
        lower_step(low, &at);
}

static void mark_trailing(program *p)
{
    for (int32_t i = p->op_count - 1; i >= 0 && p->ops[i].kind == PLAN_STEP_WAIT; i--)
        p->ops[i].trailing = true;
}

/* ---- Slices ----------------------------------------------------------------------- */

static size_t slices_of(size_t longest, size_t slice)
{
    return longest > slice ? (longest + slice - 1) / slice : 1;
}

/* A message that is carried through shared memory is cut into a few frames, so that one end copies
 * while the other folds. On a wire it is the wire that takes the time. */
static size_t segment_bytes(const lowering *low, size_t message)
{
    enum { FRAMES = 2, LEAST = 8192 };
    const size_t part = (message / FRAMES + LEAST - 1) / LEAST * LEAST;
    if (!low->comm->maps_all)
        return TRANSPORT_SEGMENT;
    return min_size(max_size(part, LEAST), TRANSPORT_SEGMENT);
}

/* Most chunks that an eager plan sends one peer: all, unless each block is for one rank. */
static size_t eager_chunks(const lowering *low)
{
    const plan *p = low->plan;
    return (size_t)(low->p->facts->personalized ? p->chunks / plan_blocks(p->collective, p->ranks)
                                                : p->chunks);
}

/* Elements of each chunk that one slice may have. From what every rank knows: a plan that is
 * circular, or of an algorithm that keeps sums or sends eagerly, is so on every rank. */
static size_t slice_limit(const lowering *low, const algo *a, size_t longest)
{
    const size_t chunks = (size_t)low->plan->chunks;
    const size_t channels = (size_t)low->p->channels;
    size_t limit = channels > 1 ? (longest + channels - 1) / channels : SIZE_MAX;
    if (low->plan->circular)
        limit = min_size(limit, TRANSPORT_WINDOW * low->p->segment);
    if (a != NULL && (a->keeps_sums & 1u << low->plan->collective) != 0)
        limit = min_size(limit, SCRATCH_MOST / low->acc / chunks / channels);
    if (a != NULL && a->eager)
        limit = min_size(limit, EAGER_BYTES / low->acc / eager_chunks(low));
    return max_size(limit, 1);
}

/* A slice for a channel of its own is worth a segment at least. */
static int32_t channels_for(const lowering *low, size_t longest)
{
    if (low->p->to_self || low->p->call.tagged)
        return 1;
    const size_t worth = longest * low->element / TRANSPORT_SEGMENT;
    const int set = low->comm->settings.channels, rails = low->comm->over_rails ? -set : 1;
    return (int32_t)max_size(1, min_size(worth, (size_t)(set > 0 ? set : rails)));
}

/* Chunk 0 of blocks of the call's count is the longest there is, so all ranks count alike. How long
 * others are of which only two ranks know the count, nobody asks: those calls have one slice. */
static void set_slices(lowering *low, const algo *a)
{
    program *p = low->p;
    const size_t longest = plan_span_of(&low->layout, PLAN_WIRE, 0, 1).count;
    const bool unknown = p->facts->uneven && p->facts->personalized;
    p->segment = segment_bytes(low, unknown ? SIZE_MAX : longest * low->acc) / low->acc;
    p->channels = channels_for(low, longest);
    p->slice = slice_limit(low, a, longest);
    p->slices = (int32_t)slices_of(longest, p->slice);
    p->channels = p->slices < p->channels ? p->slices : p->channels;
    p->scratch = low->acc * (size_t)low->plan->scratch_chunks * min_size(p->slice, longest);
    low->by_chunk = p->slices > 1;
    if (p->slices == 1) /* ranges of chunks may be longer */
        p->slice = SIZE_MAX;
}

/* ---- Programs ----------------------------------------------------------------------- */

static bool allocate(program *p, const plan *of, int32_t ops, int32_t operands)
{
    p->ops = malloc((size_t)ops * sizeof *p->ops + 1);
    p->operands = malloc((size_t)operands * sizeof *p->operands + 1);
    const size_t peers = (size_t)of->peer_count * (size_t)p->channels;
    p->peers = calloc(peers + 1, sizeof *p->peers);
    p->op_count = ops;
    p->peer_count = of->peer_count;
    p->memory = sizeof *p + (size_t)ops * sizeof *p->ops + (size_t)operands * sizeof *p->operands +
                peers * sizeof *p->peers + shape_bytes(p, of->ranks);
    return p->ops != NULL && p->operands != NULL && p->peers != NULL;
}

static void program_free(program *p)
{
    free(p->ops);
    free(p->operands);
    free(p->peers);
    free(p->room);
    free(p);
}

static enum channel_lane lane_of(const program *p)
{
    if (p->call.tagged)
        return LANE_GRANTED;
    return p->facts->pairwise ? LANE_PAIR : LANE_COLLECTIVE;
}

static ring_status find_channels(ring_comm *comm, const plan *of, program *p)
{
    const enum channel_lane lane = lane_of(p);
    for (int32_t index = 0; index < p->channels; index++) {
        program_peer *peers = &p->peers[(ptrdiff_t)index * p->peer_count];
        if (index > 0)
            memcpy(peers, p->peers, (size_t)p->peer_count * sizeof *peers);
        for (int32_t i = 0; i < p->peer_count; i++)
            RING_TRY(channel_get(comm, lane, index, of->peers[i].rank, &peers[i].on));
    }
    return RING_OK;
}

static ring_status lower(ring_comm *comm, const plan *of, const algo *a, program *p)
{
    lowering low = {.comm = comm,
                    .plan = of,
                    .p = p,
                    .element = ring_dtype_size(p->call.dtype),
                    .acc = kernel_acc_size(p->call.dtype)};
    low.layout = (plan_layout){.collective = of->collective,
                               .ranks = comm->ranks,
                               .chunks = of->chunks,
                               .count = p->call.count};
    set_slices(&low, a);
    low.layout.shape = p->call.shape;
    lower_steps(&low);
    if (!allocate(p, of, low.ops, low.operands))
        return fail(RING_ERR_MEMORY, "lowering the plan of %s for %d ranks",
                    plan_collective_name(of->collective), comm->ranks);
    lower_steps(&low);
    mark_trailing(p);
    return find_channels(comm, of, p);
}

/* Between a pair there is no choice: no algorithm. */
static ring_status choose(ring_comm *comm, const call_signature *call, tuner_choice *choice)
{
    const size_t bytes = signature_bytes(call, comm->ranks);
    *choice = (tuner_choice){.algorithm = NULL, .chunks = 1, .eager = bytes <= EAGER_BYTES};
    if (plan_facts_of(call->collective)->pairwise)
        return RING_OK;
    return tuner_choose(comm->tuner, call, choice);
}

/* ---- The call's arguments: checked once a program --------------------------------------- */

static ring_status check_types(const call_signature *call, const plan_facts *facts)
{
    if (ring_dtype_size(call->dtype) == 0)
        return fail(RING_ERR_ARGUMENT, "ring_%s: unknown dtype %d", facts->name, (int)call->dtype);
    if (facts->reduces && (unsigned)call->op >= RING_OP_COUNT)
        return fail(RING_ERR_ARGUMENT, "ring_%s: unknown op %d", facts->name, (int)call->op);
    if (facts->reduces && !kernel_serves(call->dtype, call->op))
        return fail(RING_ERR_ARGUMENT, "ring_%s: %s is for %s, not for %s", facts->name,
                    ring_op_name(call->op), call->op == RING_PREMUL_SUM ? "floats" : "integers",
                    ring_dtype_name(call->dtype));
    if (facts->result == PLAN_PREFIX && call->op == RING_AVG)
        return fail(RING_ERR_ARGUMENT, "ring_%s: avg is of all ranks; take the sum, and divide it",
                    facts->name);
    return RING_OK;
}

static ring_status check_ranks(const call_signature *call, const plan_facts *facts,
                               const ring_comm *comm)
{
    const bool has_root = facts->rooted || facts->pairwise;
    if (has_root && (call->root < 0 || call->root >= comm->ranks))
        return fail(RING_ERR_ARGUMENT, "ring_%s: %s %d; the communicator has ranks 0 to %d",
                    facts->name, facts->pairwise ? "peer" : "root", call->root, comm->ranks - 1);
    return RING_OK;
}

/* Bytes of a vector of blocks * count elements. */
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
    RING_TRY(check_ranks(&p->call, p->facts, comm));
    p->to_self = p->facts->pairwise && is_root;
    p->src_here = plan_is_on(p->facts->src_at, comm->rank, p->call.root);
    p->dst_here = plan_is_on(p->facts->dst_at, comm->rank, p->call.root);
    return p->facts->uneven ? shape_bind(p, comm->ranks) : bind_even(p, comm);
}

/* ---- The whole ---------------------------------------------------------------------------- */

static ring_status build(ring_comm *comm, program *p)
{
    tuner_choice choice;
    const plan *found;
    size_t algorithms;
    RING_TRY(bind_call(p, comm));
    RING_TRY(choose(comm, &p->call, &choice));
    RING_TRY(plans_get(comm->plans, comm, &p->call, &choice, &found));
    const call_way way = {.chunks = choice.chunks,
                          .algorithm = choice.algorithm != NULL
                                           ? (int)(choice.algorithm - algo_all(&algorithms))
                                           : 0};
    p->algorithm = found->algorithm;
    p->signature = signature_pack(&p->call, &way);
    return lower(comm, found, choice.algorithm, p);
}

static ring_status program_new(ring_comm *comm, const call_signature *call, program **out)
{
    program *p = calloc(1, sizeof *p);
    if (p == NULL)
        return fail(RING_ERR_MEMORY, "starting %s", plan_collective_name(call->collective));
    p->call = *call;
    p->facts = plan_facts_of(call->collective);
    const ring_status status = build(comm, p);
    if (status == RING_OK)
        *out = p;
    else
        program_free(p);
    return status;
}

/* ---- The cache ----------------------------------------------------------------------- */

enum { BUCKETS = 256, MOST_PROGRAMS = 256, MOST_BYTES = 8 << 20 };

struct program_cache {
    program *buckets[BUCKETS];
    program *latest, *oldest; /* by use */
    int32_t count;
    size_t bytes;
    uint64_t lowered;
};

ring_status programs_new(struct program_cache **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? RING_OK : fail(RING_ERR_MEMORY, "creating the cache of programs");
}

static void unlink_use(struct program_cache *cache, program *p)
{
    *(p->newer != NULL ? &p->newer->older : &cache->latest) = p->older;
    *(p->older != NULL ? &p->older->newer : &cache->oldest) = p->newer;
}

static void link_latest(struct program_cache *cache, program *p)
{
    p->newer = NULL;
    p->older = cache->latest;
    *(cache->latest != NULL ? &cache->latest->newer : &cache->oldest) = p;
    cache->latest = p;
}

static void evict(struct program_cache *cache, program *p)
{
    unlink_use(cache, p);
    *p->link = p->next;
    if (p->next != NULL)
        p->next->link = p->link;
    cache->count--;
    cache->bytes -= p->memory;
    program_free(p);
}

void programs_free(struct program_cache *cache)
{
    while (cache != NULL && cache->latest != NULL)
        evict(cache, cache->latest);
    free(cache);
}

/* Programs in use stay, however many there are. */
static void make_room(struct program_cache *cache)
{
    program *newer;
    for (program *p = cache->oldest; p != NULL; p = newer) {
        if (cache->count < MOST_PROGRAMS && cache->bytes < MOST_BYTES)
            return;
        newer = p->newer;
        if (p->users == 0 && atomic_load(&p->kept) == 0)
            evict(cache, p);
    }
}

static program **bucket_of(struct program_cache *cache, const call_signature *call)
{
    uint64_t h = (uint64_t)call->collective ^ (uint64_t)call->dtype << 8 ^
                 (uint64_t)call->op << 16 ^ (uint64_t)(uint32_t)call->root << 24;
    h ^= call->digest;
    h = (h ^ call->count * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0x9e3779b97f4a7c15);
    return &cache->buckets[h >> 56];
}

static bool same_call(const ring_comm *comm, const program *p, const call_signature *b)
{
    const call_signature *a = &p->call;
    return a->collective == b->collective && a->count == b->count && a->dtype == b->dtype &&
           a->op == b->op && a->root == b->root && a->tagged == b->tagged &&
           (a->shape == NULL || shape_is_same(a->shape, b->shape, comm->ranks));
}

static void keep(struct program_cache *cache, program *p)
{
    program **bucket = bucket_of(cache, &p->call);
    make_room(cache);
    p->next = *bucket;
    p->link = bucket;
    if (p->next != NULL)
        p->next->link = &p->next;
    *bucket = p;
    link_latest(cache, p);
    cache->count++;
    cache->bytes += p->memory;
    cache->lowered++;
}

ring_status programs_get(ring_comm *comm, const call_signature *call, program **out)
{
    struct program_cache *cache = comm->programs;
    program *p = cache->latest;
    if (p != NULL && same_call(comm, p, call)) {
        *out = p;
        return RING_OK;
    }
    for (p = *bucket_of(cache, call); p != NULL && !same_call(comm, p, call); p = p->next)
        continue;
    if (p == NULL) {
        RING_TRY(program_new(comm, call, &p));
        keep(cache, p);
    } else if (p->newer != cache->latest) { /* two calls in turn stay where they are */
        unlink_use(cache, p);
        link_latest(cache, p);
    }
    *out = p;
    return RING_OK;
}

uint64_t programs_lowered(const struct program_cache *cache)
{
    return cache->lowered;
}
