/* SPDX-License-Identifier: Apache-2.0
 * Launches sends and receives that start together. A short list of them is in the arguments of the
 * launch. A longer one lies in pinned memory until its run has passed, or, if a graph may replay
 * the run, until the arena is freed. */
#include "cuda_runs.h"

#include <stdlib.h>

_Static_assert(sizeof(pairs_args) <= 4096, "arguments of a kernel");
_Static_assert((int)CHORES_MOST <= (int)DEVICE_PAIR_RANKS, "each rank has its tracks");

/** Pairs in pinned memory, of a run that may not have passed. */
struct kept_pairs {
    struct kept_pairs *next;
    uint32_t number;
    size_t first, count; /* their units */
};

/* ---- Pairs -------------------------------------------------------------------------------- */

/* Gives back the memory of all runs that have passed. */
static void sweep_kept(accelerator_seat *s)
{
    for (struct kept_pairs **at = &s->pairs, *k; (k = *at) != NULL;) {
        if (!cuda_run_has_passed(s, k->number)) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        arena_unpin(s->arena, k->first, k->count);
        free(k);
    }
}

void cuda_pairs_close(accelerator_seat *s)
{
    sweep_kept(s);
    for (struct kept_pairs *k = s->pairs, *next; k != NULL; k = next) {
        next = k->next;
        free(k);
    }
    s->pairs = NULL;
}

/* Takes pinned memory for the pairs of the next run. If it is full, waits for earlier runs. */
static ring_status pin_pairs(accelerator_seat *s, size_t count, bool captured, double timeout,
                             size_t *first)
{
    const double end = clock_now() + timeout;
    const size_t units = pinned_units(count * sizeof(device_pair));
    struct kept_pairs *k = captured ? NULL : malloc(sizeof *k);
    if (k == NULL && !captured)
        return fail(RING_ERR_MEMORY, "starting a group of sends and receives on a GPU");
    for (;;) {
        sweep_kept(s);
        *first = arena_pin(s->arena, units);
        if (*first < PINNED_UNITS || s->pairs == NULL || clock_now() > end ||
            atomic_load(&s->words->abort) != 0)
            break;
        clock_sleep(1e-4);
    }
    if (*first == PINNED_UNITS) {
        free(k);
        return fail(RING_ERR_MEMORY,
                    "the pinned memory for calls on %s has no room for a group of %zu sends and "
                    "receives",
                    s->of->name, count);
    }
    if (k != NULL) {
        *k = (struct kept_pairs){s->pairs, s->number + 1, *first, units};
        s->pairs = k;
    }
    return RING_OK;
}

/* @return the number of a pair's track among all that a seat may have. */
static int track_of(const accelerator_pair *p)
{
    return p->kind == OP_COPY ? DEVICE_TRACKS - 1 : 2 * p->peer + (p->kind == OP_RECV);
}

/* Writes the pairs by track, those of a track in their order. */
static void write_pairs(const accelerator_pairs *given, device_pair *out, pairs_args *args)
{
    uint16_t at[DEVICE_TRACKS] = {0}, next = 0;
    for (size_t i = 0; i < given->count; i++)
        at[track_of(&given->of[i])]++;
    for (int i = 0; i < DEVICE_TRACKS; i++) {
        const uint16_t count = at[i];
        at[i] = next;
        next = (uint16_t)(next + count);
        args->first[args->tracks] = at[i];
        args->tracks += count > 0;
    }
    args->first[args->tracks] = next;
    for (size_t i = 0; i < given->count; i++) {
        const accelerator_pair *p = &given->of[i];
        out[at[track_of(p)]++] = (device_pair){.at = p->kind == OP_SEND ? (char *)(uintptr_t)p->src
                                                                        : p->dst,
                                               .from = p->kind == OP_COPY ? p->src : NULL,
                                               .bytes = p->bytes,
                                               .signature = p->signature,
                                               .peer = p->peer,
                                               .kind = (uint16_t)p->kind,
                                               .lanes = (uint16_t)p->lanes};
        if (args->lanes < (uint32_t)p->lanes)
            args->lanes = (uint32_t)p->lanes;
    }
}

static ring_status make_args(accelerator_seat *s, const accelerator_pairs *given, CUstream stream,
                             bool captured, pairs_args *args)
{
    device_pair *out = args->few;
    size_t first;
    *args = (pairs_args){.call = s->call};
    args->call.nanoseconds = cuda_run_nanoseconds(given->timeout);
    cuda_run_hold(s, given->holds, stream, &args->call);
    if (given->count > UINT16_MAX)
        return fail(RING_ERR_UNSUPPORTED, "a group has %zu sends and receives; a GPU runs up to %d",
                    given->count, UINT16_MAX);
    if (given->count > DEVICE_PAIRS) {
        RING_TRY(pin_pairs(s, given->count, captured, given->timeout, &first));
        out = pinned_at(s->arena, first);
        args->pairs = (const device_pair *)(uintptr_t)pinned_there(s->arena, first);
    }
    write_pairs(given, out, args);
    return RING_OK;
}

/* ---- Streams ------------------------------------------------------------------------------ */

static CUstream first_stream(const accelerator_seat *s, const accelerator_pairs *p)
{
    for (size_t i = 0; i < p->place_count; i++)
        if (p->places[i].stream != NULL)
            return p->places[i].stream;
    return s->own.stream;
}

/* @return true if a place is the first one in its stream, which is not @p stream. */
static bool is_other(const accelerator_pairs *p, size_t place, CUstream stream)
{
    const void *other = p->places[place].stream;
    for (size_t i = 0; i < place; i++)
        if (p->places[i].stream == other)
            return false;
    return other != NULL && other != stream;
}

static ring_status start_inside(accelerator_seat *s, const accelerator_pairs *pairs,
                                CUstream stream, bool captured, pairs_args *args)
{
    bool after_default = false;
    if (s->group->dead)
        return fail(RING_ERR_ABORTED, "the communicator has failed");
    for (size_t i = 0; i < pairs->place_count; i++) {
        after_default |= pairs->places[i].after_default;
        if (is_other(pairs, i, stream))
            RING_TRY(cuda_run_follow(stream, pairs->places[i].stream, s->place));
    }
    if (after_default)
        RING_TRY(cuda_run_follow_default(s, stream));
    RING_TRY(cuda_run_launch(s, s->of->programs->pairs, args->lanes, args, &args->call, stream,
                             captured));
    for (size_t i = 0; i < pairs->place_count; i++)
        if (is_other(pairs, i, stream))
            RING_TRY(cuda_run_follow(pairs->places[i].stream, stream, s->place));
    return RING_OK;
}

ring_status cuda_pairs_start(accelerator_seat *s, const accelerator_pairs *pairs, bool captured,
                             uint32_t *number)
{
    CUstream stream = first_stream(s, pairs);
    pairs_args args;
    RING_TRY(make_args(s, pairs, stream, captured, &args));
    for (size_t i = 0; i < pairs->place_count; i++)
        if (pairs->places[i].gate != NULL)
            RING_TRY(s->of->base.stop(&s->of->base, stream, pairs->places[i].gate));
    RING_TRY(cuda_enter(s->of));
    pthread_mutex_lock(&s->group->lock);
    const ring_status status = pairs->count > 0 ? start_inside(s, pairs, stream, captured, &args)
                                                : RING_OK;
    pthread_mutex_unlock(&s->group->lock);
    cuda_leave();
    *number = captured ? 0 : s->number;
    return status;
}
