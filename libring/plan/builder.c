/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds plans: appends blocks, steps and operands, and seals the plan at the end. The steps of a
 * block are consecutive, and so are the operands of a step, so building only ever appends.
 */
#include "array.h"
#include "plan.h"

#include <stdlib.h>

plan *plan_new(plan_collective collective, const char *algorithm, int rank, int ranks, int root,
               int chunks)
{
    plan *p = calloc(1, sizeof *p);
    if (p == NULL) {
        fail(RING_ERR_MEMORY, "building a plan for %d rank%s", ranks, plural(ranks));
        return NULL;
    }
    p->collective = collective;
    p->algorithm = algorithm;
    p->rank = rank;
    p->ranks = ranks;
    p->root = root;
    p->chunks = chunks;
    plan_repeat(p, 1, 0);
    return p;
}

void plan_free(plan *p)
{
    if (p == NULL)
        return;
    free(p->steps);
    free(p->locs);
    free(p->blocks);
    free(p->peers);
    free(p);
}

/* @return the array with room for one more element. If out of memory, sets p->failed and returns
 * NULL. */
static void *room_for_one(plan *p, void *array, int32_t count, int32_t *cap, size_t element)
{
    if (p->failed)
        return NULL;
    void *roomy = array_with_room(array, cap, (int64_t)count + 1, element);
    p->failed = roomy == NULL;
    return roomy;
}

void plan_repeat(plan *p, int times, int stride)
{
    plan_block *blocks = room_for_one(p, p->blocks, p->block_count, &p->block_cap, sizeof *blocks);
    if (blocks == NULL)
        return;
    p->blocks = blocks;
    p->blocks[p->block_count++] = (plan_block){.first = p->step_count,
                                               .times = times > 0 ? times : 0,
                                               .stride = stride};
}

void plan_add_step(plan *p, const plan_step *like)
{
    plan_step *steps = room_for_one(p, p->steps, p->step_count, &p->step_cap, sizeof *steps);
    if (steps == NULL)
        return;
    p->steps = steps;
    plan_step *step = &p->steps[p->step_count++];
    *step = *like;
    step->first_in = step->first_out = p->loc_count;
    step->ins = step->outs = 0;
    p->blocks[p->block_count - 1].steps++;
}

static bool add_loc(plan *p, const plan_loc *loc)
{
    plan_loc *locs = room_for_one(p, p->locs, p->loc_count, &p->loc_cap, sizeof *locs);
    if (locs == NULL)
        return false;
    p->locs = locs;
    p->locs[p->loc_count++] = *loc;
    return true;
}

/* A step's inputs precede its outputs, so each input moves the beginning of the outputs. */
void plan_add_input(plan *p, const plan_loc *loc)
{
    if (!add_loc(p, loc))
        return;
    plan_step *step = &p->steps[p->step_count - 1];
    step->ins++;
    step->first_out++;
}

void plan_add_output(plan *p, const plan_loc *loc)
{
    if (add_loc(p, loc))
        p->steps[p->step_count - 1].outs++;
}

/* ---- Steps --------------------------------------------------------------------- */

static plan_loc own(const plan *p, plan_buffer buffer, int chunk, int chunks)
{
    return (plan_loc){.rank = p->rank, .chunk = chunk, .chunks = chunks, .buffer = (uint8_t)buffer};
}

static plan_loc message(int peer, plan_buffer buffer, plan_wire wire, int chunk, int chunks)
{
    return (plan_loc){.rank = peer,
                      .chunk = chunk,
                      .chunks = chunks,
                      .buffer = (uint8_t)buffer,
                      .wire = (uint8_t)wire};
}

static void add_step(plan *p, plan_kind kind, bool eager, plan_loc in, plan_loc out)
{
    plan_add_step(p, &(plan_step){.kind = (uint8_t)kind, .eager = eager});
    plan_add_input(p, &in);
    plan_add_output(p, &out);
}

static void send(plan *p, bool eager, plan_loc from, int peer, plan_buffer to)
{
    const plan_wire wire = from.buffer == PLAN_SCRATCH ? PLAN_WIRE_ACC : PLAN_WIRE_DATA;
    add_step(p, PLAN_STEP_SEND, eager, from, message(peer, to, wire, from.chunk, from.chunks));
}

void plan_send(plan *p, plan_buffer from, int chunk, int chunks, int peer, plan_buffer to)
{
    send(p, false, own(p, from, chunk, chunks), peer, to);
}

void plan_send_eager(plan *p, plan_buffer from, int chunk, int chunks, int peer, plan_buffer to)
{
    send(p, true, own(p, from, chunk, chunks), peer, to);
}

void plan_recv(plan *p, int peer, plan_buffer to, int chunk, int chunks)
{
    const plan_wire wire = to == PLAN_SCRATCH ? PLAN_WIRE_ACC : PLAN_WIRE_DATA;
    add_step(p, PLAN_STEP_RECV, false, message(peer, to, wire, chunk, chunks),
             own(p, to, chunk, chunks));
}

void plan_copy(plan *p, plan_buffer from, int chunk, plan_buffer to, int to_chunk, int chunks)
{
    add_step(p, PLAN_STEP_COPY, false, own(p, from, chunk, chunks), own(p, to, to_chunk, chunks));
}

void plan_wait(plan *p, int peer, int back)
{
    plan_add_step(p, &(plan_step){.kind = PLAN_STEP_WAIT, .peer = peer, .back = back});
}

void plan_fold(plan *p, int chunk, int chunks)
{
    p->fold_chunk = chunk;
    p->fold_chunks = chunks;
    plan_add_step(p, &(plan_step){.kind = PLAN_STEP_FOLD});
}

void plan_fold_local(plan *p, plan_buffer buffer)
{
    const plan_loc in = own(p, buffer, p->fold_chunk, p->fold_chunks);
    plan_add_input(p, &in);
}

void plan_fold_message(plan *p, int peer, plan_wire wire)
{
    const plan_loc in = message(peer, PLAN_WIRE, wire, p->fold_chunk, p->fold_chunks);
    plan_add_input(p, &in);
}

void plan_fold_into(plan *p, plan_buffer buffer)
{
    plan_loc out = own(p, buffer, p->fold_chunk, p->fold_chunks);
    out.finish = buffer == PLAN_DST;
    plan_add_output(p, &out);
}

void plan_fold_to(plan *p, int peer, plan_buffer buffer)
{
    const bool finish = buffer == PLAN_DST;
    plan_loc out = message(peer, buffer, finish ? PLAN_WIRE_DATA : PLAN_WIRE_ACC, p->fold_chunk,
                           p->fold_chunks);
    out.finish = finish;
    plan_add_output(p, &out);
}

/* ---- Sealing ------------------------------------------------------------------- */

/* Lists each operand that is a message as a separate peer. @return the number of entries. */
static int32_t list_messages(const plan *p, plan_peer *messages)
{
    int32_t count = 0;
    for (int32_t b = 0; b < p->block_count; b++) {
        const plan_block *block = &p->blocks[b];
        for (const plan_step *step = &p->steps[block->first], *end = step + block->steps;
             step < end; step++) {
            for (int32_t i = step->first_in; i < step->first_out + step->outs; i++) {
                const bool in = i < step->first_out;
                if (p->locs[i].rank != p->rank)
                    messages[count++] = (plan_peer){.rank = p->locs[i].rank,
                                                    .sends = in ? 0 : block->times,
                                                    .recvs = in ? block->times : 0};
            }
        }
    }
    return count;
}

static int by_rank(const void *a, const void *b)
{
    const int32_t one = ((const plan_peer *)a)->rank, other = ((const plan_peer *)b)->rank;
    return (one > other) - (one < other);
}

/* Sorts the messages by rank, then merges those of the same rank into one peer. */
static bool list_peers(plan *p)
{
    p->peers = malloc((size_t)(p->loc_count > 0 ? p->loc_count : 1) * sizeof *p->peers);
    if (p->peers == NULL)
        return false;
    const int32_t messages = list_messages(p, p->peers);
    qsort(p->peers, (size_t)messages, sizeof *p->peers, by_rank);
    for (int32_t i = 0; i < messages; i++) {
        const plan_peer next = p->peers[i];
        if (p->peer_count == 0 || p->peers[p->peer_count - 1].rank != next.rank)
            p->peers[p->peer_count++] = (plan_peer){.rank = next.rank};
        p->peers[p->peer_count - 1].sends += next.sends;
        p->peers[p->peer_count - 1].recvs += next.recvs;
    }
    return true;
}

/* Extends the range of scratch chunks so that it contains the operand's chunks. */
static void cover(plan *p, plan_loc loc)
{
    const bool first = p->scratch_chunks == 0;
    const int32_t end = p->scratch_first + p->scratch_chunks, loc_end = loc.chunk + loc.chunks;
    const int32_t begin = first || loc.chunk < p->scratch_first ? loc.chunk : p->scratch_first;
    p->scratch_chunks = (first || loc_end > end ? loc_end : end) - begin;
    p->scratch_first = begin;
}

static void measure_scratch(plan *p)
{
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        const plan_step *step = plan_at(&at);
        for (int i = 0; i < step->ins + step->outs; i++) {
            const plan_loc loc = plan_input(&at, step, i); /* outputs follow inputs */
            if (loc.rank == p->rank && loc.buffer == PLAN_SCRATCH)
                cover(p, loc);
        }
    }
}

ring_status plan_seal(plan *p)
{
    int32_t kept = 0;
    for (int32_t b = 0; b < p->block_count; b++)
        if (p->blocks[b].steps > 0 && p->blocks[b].times > 0)
            p->blocks[kept++] = p->blocks[b];
    p->block_count = kept;
    if (p->failed || !list_peers(p))
        return fail(RING_ERR_MEMORY, "building the plan of %s by %s for %d rank%s",
                    plan_collective_name(p->collective), p->algorithm, p->ranks, plural(p->ranks));
    bool uses_scratch = false;
    for (int32_t i = 0; i < p->loc_count && !uses_scratch; i++)
        uses_scratch = p->locs[i].rank == p->rank && p->locs[i].buffer == PLAN_SCRATCH;
    if (uses_scratch)
        measure_scratch(p);
    return RING_OK;
}
