/* SPDX-License-Identifier: Apache-2.0
 * Computes the order of a stage's passes, and writes each pass together with the transfers of
 * activations and gradients from and to the neighbouring stages. */
#include "schedule_1f1b.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "update_writer.h"

enum { PREVIOUS = -1, NEXT = 1 };

/* ---- The order of passes ------------------------------------------------------------------- */

int pipe_slots(const pipe_place *place, int micro_batches)
{
    const int rest = place->stages - place->stage;
    return rest < micro_batches ? rest : micro_batches;
}

/* The order is: @c ahead forward passes, then pairs of a forward and a backward pass, then the
 * remaining backward passes. */
pipe_pass pipe_pass_of(const pipe_place *place, int micro_batches, int number)
{
    const int ahead = pipe_slots(place, micro_batches) - 1;
    const int later = number - ahead, pairs = micro_batches - ahead;
    if (later < 0)
        return (pipe_pass){false, number};
    if (later >= 2 * pairs)
        return (pipe_pass){true, later - pairs};
    return (pipe_pass){later % 2 == 1, later / 2 + (later % 2 == 0 ? ahead : 0)};
}

/* ---- Counting idle slots ------------------------------------------------------------------- */

/* State of the simulation. Times are numbers of slots. */
typedef struct timeline {
    int stages, micro_batches;
    int *ends;  /* [stages][micro_batches][2] when forward and backward end; 0: they have not run */
    int *done;  /* [stages] number of passes that have run */
    int *clock; /* [stages] when the latest pass ends */
} timeline;

static int *end_of(const timeline *t, int stage, pipe_pass pass)
{
    return &t->ends[(stage * t->micro_batches + pass.micro) * 2 + pass.backward];
}

/* @return the time at which the input of the pass is complete; -1 if the pass that computes it has
 * not run. */
static int ready_at(const timeline *t, int stage, pipe_pass pass)
{
    const int from = stage + (pass.backward ? NEXT : PREVIOUS);
    if (from < 0 || from == t->stages)
        return 0; /* the input is read from the data, or is the gradient of the loss */
    const int end = *end_of(t, from, pass);
    return end > 0 ? end : -1;
}

/* Runs the next pass of a stage. @return false if the stage has no pass left or waits for input. */
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

/* Runs all passes. @return the time at which the last one ends. */
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

/* A list that is being written. The arrays have the number of the latest transfer of each slot, or
 * UPDATE_NOTHING. */
typedef struct pipe_writer {
    update_writer w;
    pipe_place place;
    int slots;
    bool trains;                    /* backward passes follow the forward passes */
    int value_in[PIPE_STAGES_MAX];  /* RECV of activations from the previous stage */
    int value_out[PIPE_STAGES_MAX]; /* SEND of activations to the next stage */
    int grad_in[PIPE_STAGES_MAX];   /* RECV of gradients from the next stage */
    int grad_out[PIPE_STAGES_MAX];  /* SEND of gradients to the previous stage */
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

/* Writes a SEND to or RECV from the neighbouring stage, if that stage exists.
 * @param towards  PREVIOUS or NEXT
 * @param earlier  the instruction that computes the data, or that last used their memory */
static int transfer(pipe_writer *p, update_kind kind, int towards, int micro, int earlier)
{
    const int neighbour = p->place.stage + towards;
    if (neighbour < 0 || neighbour >= p->place.stages)
        return UPDATE_NOTHING;
    const int number = update_write(&p->w, (update_instruction){.kind = kind,
                                                                .queue = QUEUE_WIRE,
                                                                .micro = micro,
                                                                .slot = micro % p->slots,
                                                                .towards = towards});
    update_follow(&p->w, number, earlier);
    return number;
}

/* Makes the first instruction of a pass wait until its input is received, and until the output that
 * an earlier pass left in its slot is sent. */
static void follow_both(pipe_writer *p, int first, int received, int sent)
{
    if (p->w.failed)
        return;
    update_follow(&p->w, first, received);
    update_follow(&p->w, first, sent);
}

/* Writes a forward pass, the SEND of its output, and the RECV of the gradient of that output. */
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

/* Writes a backward pass and the SEND of its gradient. After it the slot is free, so it also writes
 * the RECV for the micro-batch that uses the slot next. */
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

/* Writes the sum of the gradients that several stages share. Each stage must first have reduced its
 * own gradients over its ranks, so that all ranks of a stage add the same numbers. */
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
