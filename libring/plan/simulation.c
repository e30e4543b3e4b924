/* SPDX-License-Identifier: Apache-2.0
 * Keeps the symbols that the ranks of a simulation hold, and writes messages about wrong steps. */
#include "simulation.h"

#include "array.h"
#include "step_text.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Failing --------------------------------------------------------------------------------- */

ring_status sim_no_memory(const simulation *s)
{
    return fail(RING_ERR_MEMORY, "running the plans of %d rank%s", s->ranks, plural(s->ranks));
}

__attribute__((format(printf, 3, 0))) static ring_status
wrong(const simulation *s, const char *where, const char *format, va_list args)
{
    const plan *p = s->plans[0];
    char text[640];
    vsnprintf(text, sizeof text, format, args);
    return fail(RING_ERR_INTERNAL, "%s by %s, %d rank%s%s: %s%s",
                plan_collective_name(p->collective), p->algorithm, s->ranks, plural(s->ranks),
                s->mode.in_place ? ", in place" : "", where, text);
}

ring_status sim_wrong(const simulation *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const ring_status status = wrong(s, "", format, args);
    va_end(args);
    return status;
}

ring_status sim_offence(const simulation *s, int rank, const char *format, ...)
{
    char step[STEP_TEXT], where[STEP_TEXT + 64];
    step_text(&s->cursors[rank], step, sizeof step);
    snprintf(where, sizeof where, "rank %d, step %d (%s): ", rank, s->done[rank], step);
    va_list args;
    va_start(args, format);
    const ring_status status = wrong(s, where, format, args);
    va_end(args);
    return status;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* A block of a pair of ranks is in the sender's src and in the receiver's dst. */
static bool is_own_block(const plan *p, bool source, int chunk)
{
    const int block = chunk / (p->chunks / plan_blocks(p->collective, p->ranks));
    const bool of_pairs = plan_blocks(p->collective, p->ranks) > p->ranks;
    return (of_pairs && source ? block / p->ranks : block % p->ranks) == p->rank;
}

/* A barrier's buffers have no elements, so every rank has all of its chunks. */
bool sim_has(const plan *p, plan_buffer buffer, int chunk)
{
    const plan_facts *facts = plan_facts_of(p->collective);
    if (buffer == PLAN_SCRATCH || facts->result == PLAN_NOTHING)
        return true;
    const bool source = buffer == PLAN_SRC;
    const bool of_pairs = facts->src_blocks && facts->dst_blocks;
    const bool whole = !of_pairs && ((source ? facts->src_blocks : facts->dst_blocks) ||
                                     plan_blocks(p->collective, p->ranks) == 1);
    return plan_is_on(source ? facts->src_at : facts->dst_at, p->rank, p->root) &&
           (whole || is_own_block(p, source, chunk));
}

enum { AREAS = 3 }; /* a rank has SRC, DST and SCRATCH */

int32_t sim_places(const simulation *s)
{
    return AREAS * s->ranks * s->plans[0]->chunks;
}

int32_t sim_place(const simulation *s, int rank, plan_buffer buffer, int chunk)
{
    const plan *p = s->plans[0];
    int32_t area = AREAS * rank;
    if (buffer == PLAN_SCRATCH)
        area += 2;
    else if (buffer == PLAN_DST && !s->mode.in_place)
        area += 1;
    if (buffer == PLAN_SCRATCH && s->mode.slices > 1) {
        /* All slices of a chunk share the place of that chunk; see check_slices(). */
        const int parts = p->chunks / plan_blocks(p->collective, p->ranks) / s->mode.slices;
        chunk = chunk / parts / s->mode.slices * parts + chunk % parts;
    }
    return area * p->chunks + chunk;
}

int32_t sim_held(const simulation *s, int rank, plan_buffer buffer, int chunk)
{
    return s->cells[sim_place(s, rank, buffer, chunk)];
}

void sim_note_latest(simulation *s, int rank, int chunk, int32_t id)
{
    s->latest[rank * s->plans[0]->chunks + chunk] = id;
}

ring_status sim_carry(simulation *s, int32_t more)
{
    int32_t *carried = array_with_room(s->carried, &s->carried_cap,
                                       (int64_t)s->carried_count + more, sizeof *carried);
    if (carried == NULL)
        return sim_no_memory(s);
    s->carried = carried;
    return RING_OK;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static ring_status fill_sources(simulation *s)
{
    const int chunks = s->plans[0]->chunks;
    for (int rank = 0; rank < s->ranks; rank++) {
        for (int chunk = 0; chunk < chunks; chunk++) {
            if (!sim_has(s->plans[rank], PLAN_SRC, chunk))
                continue;
            const int32_t leaf = symbol_leaf(&s->symbols, rank, chunk);
            if (leaf == SYMBOL_NONE)
                return sim_no_memory(s);
            s->cells[sim_place(s, rank, PLAN_SRC, chunk)] = leaf;
            sim_note_latest(s, rank, chunk, leaf);
        }
    }
    return RING_OK;
}

static ring_status allocate(simulation *s)
{
    const size_t pieces = (size_t)s->ranks * (size_t)s->plans[0]->chunks;
    const size_t cells = (AREAS + 1) * pieces, ranks = (size_t)s->ranks;
    s->cells = malloc(cells * sizeof *s->cells);
    s->sums = malloc((size_t)s->plans[0]->chunks * sizeof *s->sums);
    s->cursors = malloc(ranks * sizeof *s->cursors);
    s->done = calloc(ranks, sizeof *s->done);
    if (s->cells == NULL || s->sums == NULL || s->cursors == NULL || s->done == NULL)
        return sim_no_memory(s);
    for (size_t i = 0; i < cells; i++)
        s->cells[i] = SYMBOL_NONE;
    s->latest = s->cells + AREAS * pieces;
    return RING_OK;
}

ring_status sim_open(simulation *s, const plan *const *plans, int ranks, sim_mode mode)
{
    *s = (simulation){.plans = plans, .ranks = ranks, .mode = mode};
    RING_TRY(queues_open(&s->queues, ranks));
    RING_TRY(allocate(s));
    for (int rank = 0; rank < ranks; rank++)
        s->cursors[rank] = plan_begin(plans[rank]);
    return fill_sources(s);
}

void sim_close(simulation *s)
{
    symbols_free(&s->symbols);
    queues_close(&s->queues);
    free(s->cells);
    free(s->sums);
    free(s->cursors);
    free(s->done);
    free(s->events);
    free(s->taken);
    free(s->carried);
}
