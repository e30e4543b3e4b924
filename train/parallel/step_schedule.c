/* SPDX-License-Identifier: Apache-2.0
 * The generators. */
#include "step_schedule.h"

#include <stdlib.h>

#include "errors.h"
#include "step_writer.h"

const char *const step_names[STEP_KINDS] = {
    [STEP_LOAD] = "load",       [STEP_GATHER] = "gather", [STEP_FORWARD] = "forward",
    [STEP_SEND] = "send",       [STEP_RECV] = "recv",     [STEP_BACKWARD] = "backward",
    [STEP_REDUCE] = "reduce",   [STEP_CLIP] = "clip",     [STEP_STEP] = "step",
    [STEP_RELEASE] = "release",
};

int step_write(step_writer *w, step_instruction instruction)
{
    step_schedule *schedule = w->schedule;
    if (schedule->count == schedule->room) {
        const int room = schedule->room > 0 ? 2 * schedule->room : 64;
        step_instruction *list = realloc(schedule->list, (size_t)room * sizeof *list);
        w->failed |= list == NULL;
        if (list == NULL)
            return STEP_NOTHING;
        schedule->list = list;
        schedule->room = room;
    }
    schedule->list[schedule->count] = instruction;
    return schedule->count++;
}

void step_follow(step_writer *w, int number, int earlier)
{
    if (number == STEP_NOTHING || earlier == STEP_NOTHING)
        return;
    step_instruction *instruction = &w->schedule->list[number];
    instruction->after[instruction->after_count++] = earlier;
}

/* ---- Parts of an update -------------------------------------------------------------------- */

static void gather(step_writer *w, int bucket, int earlier)
{
    const int place = bucket % LIVE_BUCKETS;
    const int number = step_write(w, (step_instruction){.kind = STEP_GATHER,
                                                        .queue = QUEUE_WIRE,
                                                        .bucket = bucket});
    step_follow(w, number, w->released[place]);
    step_follow(w, number, earlier);
    w->gathered[place] = number;
}

static void release(step_writer *w, int bucket, int user)
{
    const int place = bucket % LIVE_BUCKETS;
    const int number = step_write(w, (step_instruction){.kind = STEP_RELEASE, .bucket = bucket});
    step_follow(w, number, user);
    w->released[place] = number;
}

static int compute(step_writer *w, step_kind kind, int bucket, int micro)
{
    const partition_bucket *at = &w->partition->buckets[bucket];
    const int number = step_write(w, (step_instruction){.kind = kind,
                                                        .bucket = bucket,
                                                        .first = at->first,
                                                        .end = at->end,
                                                        .micro = micro,
                                                        .slot = w->slot});
    if (w->stage == 3)
        step_follow(w, number, w->gathered[bucket % LIVE_BUCKETS]);
    return number;
}

/* The next bucket is gathered while this one is computed with. */
int step_write_forward(step_writer *w, int micro)
{
    const int buckets = w->partition->count;
    int forward = STEP_NOTHING;
    if (w->stage == 3)
        gather(w, 0, STEP_NOTHING);
    for (int b = 0; b < buckets; b++) {
        if (w->stage == 3 && b + 1 < buckets)
            gather(w, b + 1, STEP_NOTHING);
        forward = compute(w, STEP_FORWARD, b, micro);
        if (w->stage == 3)
            release(w, b, forward);
    }
    return forward;
}

/* Stages 0 and 1 sum over micro-batches before they reduce, 2 and 3 reduce before they sum. */
static void reduce(step_writer *w, int bucket, int micro, int backward)
{
    const bool each = w->stage >= 2;
    if (!each && micro + 1 < w->micro_batches)
        return;
    const int number = step_write(w, (step_instruction){.kind = STEP_REDUCE,
                                                        .queue = QUEUE_WIRE,
                                                        .bucket = bucket,
                                                        .micro = micro,
                                                        .accumulate = each && micro > 0});
    step_follow(w, number, backward);
    w->reduced[bucket % LIVE_BUCKETS] = number;
}

/* While backward goes on. */
void step_write_loss(step_writer *w, int micro)
{
    if (micro + 1 == w->micro_batches)
        step_write(w, (step_instruction){.kind = STEP_REDUCE,
                                         .queue = QUEUE_WIRE,
                                         .bucket = BUCKET_LOSS,
                                         .micro = micro});
}

/* Gradients of two buckets have a place each; a third one waits until the first is reduced. */
int step_write_backward(step_writer *w, int micro)
{
    const int last = w->partition->count - 1;
    int backward = STEP_NOTHING;
    if (w->stage == 3)
        gather(w, last, STEP_NOTHING);
    for (int b = last; b >= 0; b--) {
        if (w->stage == 3 && b > 0)
            gather(w, b - 1, STEP_NOTHING);
        backward = compute(w, STEP_BACKWARD, b, micro);
        if (w->stage >= 2)
            step_follow(w, backward, w->reduced[b % LIVE_BUCKETS]);
        else if (backward != STEP_NOTHING)
            w->schedule->list[backward].accumulate = micro > 0;
        reduce(w, b, micro, backward);
        if (w->stage == 3)
            release(w, b, backward);
    }
    return backward;
}

void step_write_step(step_writer *w)
{
    const int clip = step_write(w, (step_instruction){.kind = STEP_CLIP, .after_all = true});
    for (int b = 0; b < w->partition->count; b++) {
        const int step = step_write(w, (step_instruction){.kind = STEP_STEP, .bucket = b});
        step_follow(w, step, clip);
        if (w->stage == 1 || w->stage == 2)
            step_follow(w,
                        step_write(w, (step_instruction){.kind = STEP_GATHER,
                                                         .queue = QUEUE_WIRE,
                                                         .bucket = b}),
                        step);
    }
}

/* ---- Whole lists --------------------------------------------------------------------------- */

step_writer step_writer_start(step_schedule *schedule, const train_partition *partition, int stage,
                              int micro_batches)
{
    *schedule = (step_schedule){0};
    step_writer w = {.schedule = schedule,
                     .partition = partition,
                     .stage = stage,
                     .micro_batches = micro_batches};
    for (int i = 0; i < LIVE_BUCKETS; i++)
        w.gathered[i] = w.released[i] = w.reduced[i] = STEP_NOTHING;
    return w;
}

ring_status step_writer_finish(const step_writer *w)
{
    if (w->failed)
        return train_fail(RING_ERR_MEMORY, "no memory for the list of an update's instructions");
    return RING_OK;
}

ring_status schedule_update(step_schedule *schedule, const train_partition *partition, int stage,
                            int micro_batches)
{
    step_writer w = step_writer_start(schedule, partition, stage, micro_batches);
    for (int micro = 0; micro < micro_batches; micro++) {
        step_write(&w, (step_instruction){.kind = STEP_LOAD, .micro = micro});
        step_write_forward(&w, micro);
        step_write_loss(&w, micro);
        step_write_backward(&w, micro);
    }
    step_write_step(&w);
    return step_writer_finish(&w);
}

ring_status schedule_forward(step_schedule *schedule, const train_partition *partition, int stage)
{
    step_writer w = step_writer_start(schedule, partition, stage, 1);
    step_write(&w, (step_instruction){.kind = STEP_LOAD});
    step_write_forward(&w, 0);
    return step_writer_finish(&w);
}

void schedule_free(step_schedule *schedule)
{
    free(schedule->list);
    *schedule = (step_schedule){0};
}
