/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a Chrome trace of all ranks' steps. Every rank advances its own time line, and messages
 * take the cost model's times from rank to rank.
 */
#include "checker.h"
#include "step_text.h"

#include <stdlib.h>

typedef struct trace {
    const plan *const *plans;
    int ranks;
    FILE *out;
    cost_model model;
    queues queues;
    timeline *lines;      /* [ranks] */
    plan_cursor *cursors; /* [ranks] */
    double *read_by; /* [ranks * ranks] time at which the receiver has read the latest reference */
    int rank;        /* the rank whose step is being executed */
    ring_status status;
} trace;

static double *read_by(const trace *t, int from, int to)
{
    return &t->read_by[from * t->ranks + to];
}

static void post_message(void *context, int peer, const cost_post *post)
{
    trace *t = context;
    const ring_status status =
        queue_post(&t->queues, &(queue_message){.from = t->rank, .to = peer, .post = *post});
    if (status != RING_OK)
        t->status = status;
}

/* If the message is a reference, this step reads it. */
static void take_message(void *context, int peer, cost_post *post)
{
    trace *t = context;
    const plan_cost_params *params = cost_between(&t->model, t->rank, peer);
    queue_message *message = queue_first(&t->queues, peer, t->rank);
    *post = message->post;
    const double now = t->lines[t->rank].now, arrival = post->departure + params->alpha_ref / 2;
    if (post->way == COST_REFERENCE)
        *read_by(t, peer, t->rank) = (now > arrival ? now : arrival) + params->alpha_ref / 2 +
                                     2 * (double)post->bytes * params->gamma;
    queue_take(&t->queues, message, t->rank);
}

static double released(void *context, int peer, int back)
{
    const trace *t = context;
    (void)back;
    return *read_by(t, t->rank, peer);
}

static void write_event(trace *t, const plan_cursor *at, const timeline *line)
{
    char text[STEP_TEXT];
    step_text(at, text, sizeof text);
    fprintf(t->out,
            ",\n{\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"name\":\"%s\",\"cat\":\"%s\","
            "\"ts\":%.4f,\"dur\":%.4f}",
            t->rank, text, step_kind_name(plan_at(at)->kind), line->begun * 1e6,
            (line->now - line->begun) * 1e6);
}

static bool ready(const trace *t, const plan_cursor *at)
{
    const plan_step *step = plan_at(at);
    if (step->kind == PLAN_STEP_WAIT && cost_between(&t->model, t->rank, step->peer)->maps)
        return queue_is_taken(&t->queues, t->rank, step->peer, step->back);
    for (int i = 0; i < step->ins; i++) {
        const int from = plan_input(at, step, i).rank;
        if (from != t->rank && queue_first(&t->queues, from, t->rank) == NULL)
            return false;
    }
    return true;
}

static void walk_until_waiting(trace *t, int rank, bool *moved)
{
    plan_cursor *at = &t->cursors[rank];
    t->rank = rank;
    for (; plan_at(at) != NULL && ready(t, at); plan_next(at)) {
        timeline_step(&t->lines[rank], at);
        write_event(t, at, &t->lines[rank]);
        *moved = true;
    }
}

static ring_status walk_all(trace *t)
{
    for (bool moved = true; moved && t->status == RING_OK;) {
        moved = false;
        for (int rank = 0; rank < t->ranks; rank++)
            walk_until_waiting(t, rank, &moved);
    }
    for (int rank = 0; rank < t->ranks && t->status == RING_OK; rank++)
        if (plan_at(&t->cursors[rank]) != NULL)
            return fail(RING_ERR_INTERNAL, "rank %d waits for ever; see what the checker reports",
                        rank);
    return t->status;
}

static ring_status write_trace(trace *t)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", t->out);
    for (int rank = 0; rank < t->ranks; rank++)
        fprintf(t->out,
                "%s\n{\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"name\":\"thread_name\","
                "\"args\":{\"name\":\"rank %d\"}}",
                rank > 0 ? "," : "", rank, rank);
    RING_TRY(walk_all(t));
    fputs("\n]}\n", t->out);
    return ferror(t->out) ? fail(RING_ERR_SYSTEM, "writing the trace: %m") : RING_OK;
}

static ring_status prepare(trace *t)
{
    const size_t ranks = (size_t)t->ranks;
    RING_TRY(queues_open(&t->queues, t->ranks));
    t->lines = calloc(ranks, sizeof *t->lines);
    t->cursors = calloc(ranks, sizeof *t->cursors);
    t->read_by = calloc(ranks * ranks, sizeof *t->read_by);
    if (t->lines == NULL || t->cursors == NULL || t->read_by == NULL)
        return fail(RING_ERR_MEMORY, "tracing the plans of %d rank%s", t->ranks, plural(t->ranks));
    for (int rank = 0; rank < t->ranks; rank++) {
        t->cursors[rank] = plan_begin(t->plans[rank]);
        t->lines[rank] = (timeline){.model = &t->model,
                                    .context = t,
                                    .post = post_message,
                                    .now = cost_of_host(&t->model)->overhead,
                                    .take = take_message,
                                    .released = released};
    }
    return RING_OK;
}

ring_status plan_print_trace(const plan *const *plans, const plan_world *world, size_t count,
                             size_t element, const plan_prices *prices, FILE *out)
{
    RING_TRY(check_shape(plans, world->ranks));
    /* Elements of 2 bytes are priced as floats, whose accumulator is float32. */
    const size_t acc = element == 2 ? 4 : element;
    trace t = {.plans = plans,
               .ranks = world->ranks,
               .out = out,
               .model = cost_model_of(plans[0], world, count, element, acc, prices)};
    ring_status status = prepare(&t);
    if (status == RING_OK)
        status = write_trace(&t);
    queues_close(&t.queues);
    free(t.lines);
    free(t.cursors);
    free(t.read_by);
    return status;
}
