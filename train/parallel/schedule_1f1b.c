/* SPDX-License-Identifier: Apache-2.0
 * Writes the passes of a stage in order, and around each of them the transfers from and to its
 * neighbours. */
#include "schedule_1f1b.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "update_writer.h"

enum { PREVIOUS = -1, NEXT = 1 };

/* ---- The order of passes ------------------------------------------------------------------- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

int pipe_slots(const pipe_place *place, int micro_batches)
{
    return least(place->stages - place->stage, micro_batches);
}

pipe_pass pipe_pass_of(const pipe_place *place, int micro_batches, int number)
{
    const int ahead = pipe_slots(place, micro_batches) - 1; /* forwards before the pairs begin */
    const int behind = number - ahead, pairs = micro_batches - ahead;
    if (behind < 0)
        return (pipe_pass){false, number};
    if (behind >= 2 * pairs)
        return (pipe_pass){true, behind - pairs};
    return (pipe_pass){behind % 2 == 1, behind / 2 + (behind % 2 == 0 ? ahead : 0)};
}

/* ---- Counting idle slots ------------------------------------------------------------------- */

/* When passes end, in slots; 0: not yet. */
typedef struct timeline {
    int stages, micro_batches;
    int *ends;  /* [stages][micro_batches][2], forward and backward */
    int *done;  /* [stages] passes */
    int *clock; /* [stages] end of the latest pass */
} timeline;

static int *end_of(const timeline *t, int stage, pipe_pass pass)
{
    return &t->ends[(stage * t->micro_batches + pass.micro) * 2 + pass.backward];
}

/* @return when the input of the pass was complete; -1 if it is not yet. */
static int ready_at(const timeline *t, int stage, pipe_pass pass)
{
    const int from = stage + (pass.backward ? NEXT : PREVIOUS);
    if (from < 0 || from == t->stages)
        return 0; /* the data, or the loss of this stage's own forward */
    const int end = *end_of(t, from, pass);
    return end > 0 ? end : -1;
}

static bool run_pass(timeline *t, int stage)
{
    const pipe_place place = {t->stages, stage};
    if (t->done[stage] == 2 * t->micro_batches)
        return false;
    const pipe_pass pass = pipe_pass_of(&place, t->micro_batches, t->done[stage]);
    const int ready = ready_at(t, stage, pass);
    if (ready < 0)
        return false;
    t->clock[stage] = (ready > t->clock[stage] ? ready : t->clock[stage]) + 1;
    *end_of(t, stage, pass) = t->clock[stage];
    t->done[stage]++;
    return true;
}

/* @return slots from the first pass to the end of the last. */
static int run_timeline(timeline *t)
{
    int last = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < t->stages; s++) {
            moved |= run_pass(t, s);
            last = t->clock[s] > last ? t->clock[s] : last;
        }
    }
    return last;
}

ring_status pipe_count_slots(int stages, int micro_batches, int *ends, double *idle)
{
    const size_t passes = (size_t)stages * (size_t)micro_batches * 2;
    timeline t = {.stages = stages, .micro_batches = micro_batches};
    RING_TRY(train_alloc((void **)&t.ends, (passes + 2 * (size_t)stages) * sizeof(int),
                         "a pipeline's slots"));
    t.done = t.ends + passes;
    t.clock = t.done + stages;
    *idle = 1.0 - 2.0 * micro_batches / run_timeline(&t);
    if (ends != NULL)
        memcpy(ends, t.ends, passes * sizeof *ends);
    free(t.ends);
    return RING_OK;
}

/* ---- The list ------------------------------------------------------------------------------ */

/* A list that is being written; by slot the latest transfers. */
typedef struct pipe_writer {
    update_writer w;
    pipe_place place;
    int slots;
    bool trains;                                               /* backward passes follow */
    int value_in[PIPE_STAGES_MAX], value_out[PIPE_STAGES_MAX]; /* RECV, SEND of activations */
    int grad_in[PIPE_STAGES_MAX], grad_out[PIPE_STAGES_MAX];   /* and of their gradients */
} pipe_writer;

static pipe_writer start(update_schedule *schedule, const train_partition *partition, int zero,
                         const pipe_place *place, int micro_batches)
{
    pipe_writer p = {.w = update_writer_start(schedule, partition, zero, micro_batches),
                     .place = *place,
                     .slots = pipe_slots(place, micro_batches)};
    for (int s = 0; s < p.slots; s++)
        p.value_in[s] = p.value_out[s] = p.grad_in[s] = p.grad_out[s] = UPDATE_NOTHING;
    return p;
}

static bool has_neighbour(const pipe_writer *p, int towards)
{
    const int stage = p->place.stage + towards;
    return stage >= 0 && stage < p->place.stages;
}

/* Writes a SEND or RECV if that neighbour exists. It waits for the instruction that made the data
 * or last used their place. */
static int transfer(pipe_writer *p, update_kind kind, int towards, int micro, int earlier)
{
    if (!has_neighbour(p, towards))
        return UPDATE_NOTHING;
    const int number = update_write(&p->w, (update_instruction){.kind = kind,
                                                                .queue = QUEUE_WIRE,
                                                                .micro = micro,
                                                                .slot = micro % p->slots,
                                                                .towards = towards});
    update_follow(&p->w, number, earlier);
    return number;
}

/* Makes the first instruction of a pass wait for its input and for its slot to be free. */
static void follow_both(pipe_writer *p, int first, int received, int sent)
{
    if (p->w.failed)
        return;
    update_follow(&p->w, first, received);
    update_follow(&p->w, first, sent);
}

static void write_forward(pipe_writer *p, int micro)
{
    const int slot = micro % p->slots;
    p->w.slot = slot;
    update_write(&p->w, (update_instruction){.kind = UPDATE_LOAD, .micro = micro, .slot = slot});
    const int first = p->w.schedule->count, last = update_write_forward(&p->w, micro);
    follow_both(p, first, p->value_in[slot], p->value_out[slot]);
    p->value_out[slot] = transfer(p, UPDATE_SEND, NEXT, micro, last);
    if (p->trains)
        p->grad_in[slot] = transfer(p, UPDATE_RECV, NEXT, micro, last);
}

/* When it has ended, the slot is free for another micro-batch. */
static void write_backward(pipe_writer *p, int micro)
{
    const int slot = micro % p->slots, later = micro + p->slots;
    p->w.slot = slot;
    const int first = p->w.schedule->count, last = update_write_backward(&p->w, micro);
    follow_both(p, first, p->grad_in[slot], p->grad_out[slot]);
    p->grad_out[slot] = transfer(p, UPDATE_SEND, PREVIOUS, micro, last);
    if (later < p->w.micro_batches)
        p->value_in[slot] = transfer(p, UPDATE_RECV, PREVIOUS, later, last);
}

/* When each stage has its gradients, summed over its ranks: so all its ranks add the same. */
static void write_ties(pipe_writer *p)
{
    bool any = false;
    for (int b = 0; b < p->w.partition->count; b++)
        any |= p->w.partition->buckets[b].is_shared;
    if (any)
        update_write(&p->w, (update_instruction){.kind = UPDATE_REDUCE,
                                                 .bucket = BUCKET_TIES,
                                                 .micro = p->w.micro_batches - 1,
                                                 .after_all = true});
}

ring_status schedule_1f1b(update_schedule *schedule, const train_partition *partition, int zero,
                          const pipe_place *place, int micro_batches)
{
    pipe_writer p = start(schedule, partition, zero, place, micro_batches);
    p.trains = true;
    for (int micro = 0; micro < p.slots; micro++)
        p.value_in[micro] = transfer(&p, UPDATE_RECV, PREVIOUS, micro, UPDATE_NOTHING);
    for (int n = 0; n < 2 * micro_batches; n++) {
        const pipe_pass pass = pipe_pass_of(place, micro_batches, n);
        if (pass.backward)
            write_backward(&p, pass.micro);
        else
            write_forward(&p, pass.micro);
    }
    write_ties(&p);
    update_write_loss(&p.w, micro_batches - 1);
    update_write_optimize(&p.w);
    return update_writer_finish(&p.w);
}

ring_status schedule_pipe_forward(update_schedule *schedule, const train_partition *partition,
                                  int zero, const pipe_place *place)
{
    pipe_writer p = start(schedule, partition, zero, place, 1);
    p.value_in[0] = transfer(&p, UPDATE_RECV, PREVIOUS, 0, UPDATE_NOTHING);
    write_forward(&p, 0);
    return update_writer_finish(&p.w);
}
