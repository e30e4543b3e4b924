/* SPDX-License-Identifier: Apache-2.0
 * The generators. */
#include "step_schedule.h"

#include <stdlib.h>

#include "errors.h"

const char *const step_names[STEP_KINDS] = {
    [STEP_LOAD] = "load",       [STEP_GATHER] = "gather", [STEP_FORWARD] = "forward",
    [STEP_SEND] = "send",       [STEP_RECV] = "recv",     [STEP_BACKWARD] = "backward",
    [STEP_REDUCE] = "reduce",   [STEP_CLIP] = "clip",     [STEP_STEP] = "step",
    [STEP_RELEASE] = "release",
};

enum { NOTHING = -1 };

/* A list that is being written. */
typedef struct writer {
    step_schedule *schedule;
    const train_partition *partition;
    int stage, micro_batches;
    int gathered[LIVE_BUCKETS]; /* by place in memory: the latest GATHER into it, */
    int released[LIVE_BUCKETS]; /* RELEASE of it, */
    int reduced[LIVE_BUCKETS];  /* REDUCE from it */
    bool failed;                /* no memory */
} writer;

/* Appends an instruction. @return its number. */
static int add(writer *w, step_instruction instruction)
{
    step_schedule *schedule = w->schedule;
    if (schedule->count == schedule->room) {
        const int room = schedule->room > 0 ? 2 * schedule->room : 64;
        step_instruction *list = realloc(schedule->list, (size_t)room * sizeof *list);
        w->failed |= list == NULL;
        if (list == NULL)
            return NOTHING;
        schedule->list = list;
        schedule->room = room;
    }
    schedule->list[schedule->count] = instruction;
    return schedule->count++;
}

static void follow(writer *w, int number, int earlier)
{
    if (number == NOTHING || earlier == NOTHING)
        return;
    step_instruction *instruction = &w->schedule->list[number];
    instruction->after[instruction->after_count++] = earlier;
}

/* ---- Parts of an update -------------------------------------------------------------------- */

static void gather(writer *w, int bucket, int earlier)
{
    const int place = bucket % LIVE_BUCKETS;
    const int number =
        add(w, (step_instruction){.kind = STEP_GATHER, .queue = QUEUE_WIRE, .bucket = bucket});
    follow(w, number, w->released[place]);
    follow(w, number, earlier);
    w->gathered[place] = number;
}

static void release(writer *w, int bucket, int user)
{
    const int place = bucket % LIVE_BUCKETS;
    const int number = add(w, (step_instruction){.kind = STEP_RELEASE, .bucket = bucket});
    follow(w, number, user);
    w->released[place] = number;
}

static int compute(writer *w, step_kind kind, int bucket, int micro)
{
    const partition_bucket *at = &w->partition->buckets[bucket];
    const int number = add(w, (step_instruction){.kind = kind,
                                                 .bucket = bucket,
                                                 .first = at->first,
                                                 .end = at->end,
                                                 .micro = micro});
    if (w->stage == 3)
        follow(w, number, w->gathered[bucket % LIVE_BUCKETS]);
    return number;
}

/* The next bucket is gathered while this one is computed with. */
static void write_forward(writer *w, int micro)
{
    const int buckets = w->partition->count;
    if (w->stage == 3)
        gather(w, 0, NOTHING);
    for (int b = 0; b < buckets; b++) {
        if (w->stage == 3 && b + 1 < buckets)
            gather(w, b + 1, NOTHING);
        const int forward = compute(w, STEP_FORWARD, b, micro);
        if (w->stage == 3)
            release(w, b, forward);
    }
}

/* Stages 0 and 1 sum over micro-batches before they reduce, 2 and 3 reduce before they sum. */
static void reduce(writer *w, int bucket, int micro, int backward)
{
    const bool each = w->stage >= 2;
    if (!each && micro + 1 < w->micro_batches)
        return;
    const int number = add(w, (step_instruction){.kind = STEP_REDUCE,
                                                 .queue = QUEUE_WIRE,
                                                 .bucket = bucket,
                                                 .micro = micro,
                                                 .accumulate = each && micro > 0});
    follow(w, number, backward);
    w->reduced[bucket % LIVE_BUCKETS] = number;
}

/* While backward goes on. */
static void write_loss(writer *w, int micro)
{
    if (micro + 1 == w->micro_batches)
        add(w, (step_instruction){.kind = STEP_REDUCE,
                                  .queue = QUEUE_WIRE,
                                  .bucket = BUCKET_LOSS,
                                  .micro = micro});
}

/* Gradients of two buckets have a place each; a third one waits until the first is reduced. */
static void write_backward(writer *w, int micro)
{
    const int last = w->partition->count - 1;
    if (w->stage == 3)
        gather(w, last, NOTHING);
    for (int b = last; b >= 0; b--) {
        if (w->stage == 3 && b > 0)
            gather(w, b - 1, NOTHING);
        const int backward = compute(w, STEP_BACKWARD, b, micro);
        if (w->stage >= 2)
            follow(w, backward, w->reduced[b % LIVE_BUCKETS]);
        else if (backward != NOTHING)
            w->schedule->list[backward].accumulate = micro > 0;
        reduce(w, b, micro, backward);
        if (w->stage == 3)
            release(w, b, backward);
    }
}

static void write_step(writer *w)
{
    const int clip = add(w, (step_instruction){.kind = STEP_CLIP, .after_all = true});
    for (int b = 0; b < w->partition->count; b++) {
        const int step = add(w, (step_instruction){.kind = STEP_STEP, .bucket = b});
        follow(w, step, clip);
        if (w->stage == 1 || w->stage == 2)
            follow(w,
                   add(w,
                       (step_instruction){.kind = STEP_GATHER, .queue = QUEUE_WIRE, .bucket = b}),
                   step);
    }
}

/* ---- Whole lists --------------------------------------------------------------------------- */

static writer start(step_schedule *schedule, const train_partition *partition, int stage,
                    int micro_batches)
{
    *schedule = (step_schedule){0};
    writer w = {.schedule = schedule,
                .partition = partition,
                .stage = stage,
                .micro_batches = micro_batches};
    for (int i = 0; i < LIVE_BUCKETS; i++)
        w.gathered[i] = w.released[i] = w.reduced[i] = NOTHING;
    return w;
}

static ring_status finish(const writer *w)
{
    if (w->failed)
        return train_fail(RING_ERR_MEMORY, "no memory for the list of an update's instructions");
    return RING_OK;
}

ring_status schedule_update(step_schedule *schedule, const train_partition *partition, int stage,
                            int micro_batches)
{
    writer w = start(schedule, partition, stage, micro_batches);
    for (int micro = 0; micro < micro_batches; micro++) {
        add(&w, (step_instruction){.kind = STEP_LOAD, .micro = micro});
        write_forward(&w, micro);
        write_loss(&w, micro);
        write_backward(&w, micro);
    }
    write_step(&w);
    return finish(&w);
}

ring_status schedule_forward(step_schedule *schedule, const train_partition *partition, int stage)
{
    writer w = start(schedule, partition, stage, 1);
    add(&w, (step_instruction){.kind = STEP_LOAD});
    write_forward(&w, 0);
    return finish(&w);
}

void schedule_free(step_schedule *schedule)
{
    free(schedule->list);
    *schedule = (step_schedule){0};
}
