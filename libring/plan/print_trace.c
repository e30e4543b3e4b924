/* SPDX-License-Identifier: Apache-2.0
 *
 * A Chrome trace of all ranks' steps: every rank walks its own time line, and messages take
 * the times of the cost model from rank to rank.
 */
#include "check.h"
#include "steps.h"

#include <stdlib.h>

typedef struct trace {
    const plan *const *plans;
    int ranks;
    FILE *out;
    cost_model model;
    mail mail;
    cost_line *lines;     /* [ranks] */
    plan_cursor *cursors; /* [ranks] */
    int rank;             /* whose step is being run */
    ring_status status;
} trace;

static void post_to_mail(void *context, int peer, bool ack, const cost_post *post)
{
    trace *t = context;
    const ring_status status =
        mail_post(&t->mail, &(mail_message){.from = t->rank, .to = peer, .ack = ack,
                                            .post = *post});
    if (status != RING_OK)
        t->status = status;
}

static void take_from_mail(void *context, int peer, bool ack, cost_post *post)
{
    trace *t = context;
    mail_message *message = mail_first(&t->mail, peer, t->rank);
    (void)ack;
    *post = message->post;
    mail_take(&t->mail, message, t->rank);
}

static void write_event(trace *t, const plan_cursor *at, const cost_line *line)
{
    char text[STEP_TEXT];
    step_text(at, text, sizeof text);
    fprintf(t->out, ",\n{\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"name\":\"%s\",\"cat\":\"%s\","
                    "\"ts\":%.4f,\"dur\":%.4f}",
            t->rank, text, step_kind_name(plan_at(at)->kind),
            line->begun * 1e6, (line->now - line->begun) * 1e6);
}

static bool ready(const trace *t, const plan_cursor *at)
{
    const plan_step *step = plan_at(at);
    if (step->kind == PLAN_STEP_WAIT_ACK && !cost_acknowledges(&t->model))
        return true;
    for (int i = 0; i < step->ins; i++) {
        const int from = plan_input(at, step, i).rank;
        if (from != t->rank && mail_first(&t->mail, from, t->rank) == NULL)
            return false;
    }
    return true;
}

static void walk_until_waiting(trace *t, int rank, bool *moved)
{
    plan_cursor *at = &t->cursors[rank];
    t->rank = rank;
    for (; plan_at(at) != NULL && ready(t, at); plan_next(at)) {
        cost_step(&t->lines[rank], at);
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
            return fail(RING_ERR_INTERNAL, "rank %d waits for ever; check the plans first", rank);
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
    RING_TRY(mail_open(&t->mail, t->ranks));
    t->lines = calloc((size_t)t->ranks, sizeof *t->lines);
    t->cursors = calloc((size_t)t->ranks, sizeof *t->cursors);
    if (t->lines == NULL || t->cursors == NULL)
        return fail(RING_ERR_MEMORY, "tracing the plans of %d ranks", t->ranks);
    for (int rank = 0; rank < t->ranks; rank++) {
        t->cursors[rank] = plan_begin(t->plans[rank]);
        t->lines[rank] = (cost_line){.model = &t->model, .now = t->model.params->overhead,
                                     .context = t, .post = post_to_mail, .take = take_from_mail};
    }
    return RING_OK;
}

/* The only 16-bit types are floats, whose accumulator is float32. */
static size_t accumulator_of(size_t element)
{
    return element == 2 ? 4 : element;
}

ring_status plan_print_trace(const plan *const *plans, int ranks, size_t count, size_t element,
                             const plan_cost_params *params, FILE *out)
{
    RING_TRY(check_shape(plans, ranks));
    trace t = {.plans = plans, .ranks = ranks, .out = out,
               .model = cost_model_of(plans[0], count, element, accumulator_of(element), params)};
    ring_status status = prepare(&t);
    if (status == RING_OK)
        status = write_trace(&t);
    mail_close(&t.mail);
    free(t.lines);
    free(t.cursors);
    return status;
}
