/* SPDX-License-Identifier: Apache-2.0
 * What each kind of step does to a rank's time line. */
#include "cost_line.h"

cost_model cost_model_of(const plan *p, size_t count, size_t element, size_t acc,
                         const plan_cost_params *params)
{
    return (cost_model){
        .layout = {.collective = p->collective, .ranks = p->ranks, .chunks = p->chunks,
                   .count = count},
        .element = element,
        .acc = acc,
        .params = params,
    };
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static double alpha_of(const cost_model *model, cost_way way)
{
    return way == COST_CARRIED ? model->params->alpha : model->params->alpha_ref;
}

static bool refers(const cost_model *model, size_t bytes)
{
    return model->params->maps && bytes > 0 && bytes >= model->params->reference_min;
}

static cost_way way_of_send(const cost_model *model, size_t bytes)
{
    return refers(model, bytes) ? COST_REFERENCE : COST_CARRIED;
}

static cost_way way_of_fold(const cost_model *model, plan_loc to)
{
    return model->params->maps && to.buffer == PLAN_DST ? COST_STORED : COST_CARRIED;
}

static size_t elements_of(const cost_model *model, plan_loc loc)
{
    return plan_span_of(&model->layout, loc.buffer, loc.chunk).count;
}

size_t cost_bytes(const cost_model *model, plan_loc loc, plan_wire wire)
{
    const bool sum = loc.buffer == PLAN_WIRE && wire == PLAN_WIRE_ACC;
    return elements_of(model, loc) * (sum ? model->acc : model->element);
}

/* ---- Messages ------------------------------------------------------------------ */

static void send(cost_line *line, int peer, bool ack, size_t bytes, cost_way way)
{
    line->now += alpha_of(line->model, way) / 4;
    cost_post post = {.departure = line->now, .bytes = bytes, .way = way};
    if (way == COST_CARRIED) {
        post.departure = later(line->now, line->out_free);
        line->out_free = post.departure + (double)bytes * line->model->params->beta;
    }
    line->post(line->context, peer, ack, &post);
}

/* Messages that one step takes, in whatever order they come. */
typedef struct arrivals {
    bool any_carried;
    double first, last;  /* departures of those that are carried */
    double on_link;      /* seconds that the link is busy with them */
    double last_on_link; /* … with the last one */
    double here;         /* when all the others are there */
    double handling;
} arrivals;

static void add_carried(arrivals *a, double departure, double seconds)
{
    if (!a->any_carried || departure < a->first)
        a->first = departure;
    if (!a->any_carried || departure >= a->last) {
        a->last = departure;
        a->last_on_link = seconds;
    }
    a->on_link += seconds;
    a->any_carried = true;
}

static cost_way expect(cost_line *line, arrivals *a, int peer, bool ack, size_t bytes,
                       cost_way way)
{
    const double alpha = alpha_of(line->model, way);
    cost_post post = {.departure = 0, .bytes = bytes, .way = way};
    line->take(line->context, peer, ack, &post);
    a->handling += alpha / 4;
    if (post.way != COST_CARRIED) {
        a->here = later(a->here, post.departure + alpha / 2);
        return post.way;
    }
    add_carried(a, post.departure, (double)post.bytes * line->model->params->beta);
    return post.way;
}

/* The link carries them one after the other, none before it has left. */
static void await(cost_line *line, arrivals *a)
{
    if (a->any_carried) {
        line->in_free = later(later(line->in_free, a->first) + a->on_link,
                              a->last + a->last_on_link);
        a->here = later(a->here, line->in_free + line->model->params->alpha / 2);
    }
    line->now = later(line->now, a->here);
    line->begun = line->now;
    line->now += a->handling;
}

static void run_kernel(cost_line *line, size_t bytes)
{
    line->now += (double)bytes * line->model->params->gamma;
}

/* ---- Steps --------------------------------------------------------------------- */

static void send_step(cost_line *line, const plan_cursor *at, const plan_step *step)
{
    const plan_loc to = plan_output(at, step, 0);
    const plan_loc from = plan_input(at, step, 0);
    const size_t bytes = cost_bytes(line->model, from, PLAN_WIRE_DATA);
    send(line, to.rank, false, bytes, way_of_send(line->model, bytes));
}

static void recv_step(cost_line *line, const plan_cursor *at, const plan_step *step)
{
    const plan_loc from = plan_input(at, step, 0);
    const size_t bytes = cost_bytes(line->model, from, PLAN_WIRE_DATA);
    arrivals a = {0};
    const cost_way way = expect(line, &a, from.rank, false, bytes,
                                way_of_send(line->model, bytes));
    await(line, &a);
    if (way == COST_REFERENCE)
        run_kernel(line, 2 * bytes);
}

static void copy_step(cost_line *line, const plan_cursor *at, const plan_step *step)
{
    run_kernel(line, 2 * cost_bytes(line->model, plan_output(at, step, 0), PLAN_WIRE_DATA));
}

static size_t take_inputs(cost_line *line, const plan_cursor *at, const plan_step *step)
{
    const bool sums = step->wire_in == PLAN_WIRE_ACC;
    arrivals a = {0};
    size_t touched = 0;
    for (int i = 0; i < step->ins; i++) {
        const plan_loc in = plan_input(at, step, i);
        const size_t bytes = cost_bytes(line->model, in, step->wire_in);
        touched += bytes;
        if (in.rank != at->plan->rank)
            expect(line, &a, in.rank, false, bytes,
                   sums ? COST_CARRIED : way_of_send(line->model, bytes));
    }
    await(line, &a);
    return touched;
}

static void fold_step(cost_line *line, const plan_cursor *at, const plan_step *step)
{
    size_t touched = take_inputs(line, at, step);
    for (int i = 0; i < step->outs; i++)
        touched += cost_bytes(line->model, plan_output(at, step, i), step->wire_out);
    run_kernel(line, touched);
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = plan_output(at, step, i);
        if (out.rank != at->plan->rank)
            send(line, out.rank, false, cost_bytes(line->model, out, step->wire_out),
                 way_of_fold(line->model, out));
    }
}

/* The longest chunk is number 0. */
bool cost_acknowledges(const cost_model *model)
{
    return refers(model, elements_of(model, (plan_loc){.buffer = PLAN_SRC}) * model->element);
}

static void wait_ack_step(cost_line *line, const plan_cursor *at, const plan_step *step)
{
    arrivals a = {0};
    expect(line, &a, plan_input(at, step, 0).rank, true, 0, COST_REFERENCE);
    await(line, &a);
}

void cost_step(cost_line *line, const plan_cursor *at)
{
    const plan_step *step = plan_at(at);
    line->begun = line->now;
    switch (step->kind) {
    case PLAN_STEP_SEND:
        send_step(line, at, step);
        break;
    case PLAN_STEP_RECV:
        recv_step(line, at, step);
        break;
    case PLAN_STEP_COPY:
        copy_step(line, at, step);
        break;
    case PLAN_STEP_FOLD:
        fold_step(line, at, step);
        break;
    case PLAN_STEP_ACK:
        if (cost_acknowledges(line->model))
            send(line, plan_output(at, step, 0).rank, true, 0, COST_REFERENCE);
        break;
    case PLAN_STEP_WAIT_ACK:
        if (cost_acknowledges(line->model))
            wait_ack_step(line, at, step);
        break;
    }
}

double cost_end(const cost_line *line)
{
    return later(line->now, line->out_free);
}

/* Taken, combined with one's own if the collective combines, and given on. */
double cost_hop(const cost_model *model)
{
    const plan_cost_params *params = model->params;
    const size_t elements = elements_of(model, (plan_loc){.buffer = PLAN_SRC});
    const size_t bytes = elements * model->element, sums = elements * model->acc;
    if (plan_reduces(model->layout.collective))
        return params->alpha + (double)sums * params->beta +
               (double)(2 * sums + bytes) * params->gamma;
    if (refers(model, bytes))
        return params->alpha_ref + (double)(2 * bytes) * params->gamma;
    return params->alpha + (double)bytes * params->beta;
}
