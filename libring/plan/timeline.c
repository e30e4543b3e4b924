/* SPDX-License-Identifier: Apache-2.0
 * Implements the effect of each kind of step on a rank's time line. */
#include "timeline.h"

cost_model cost_model_of(const plan *p, const plan_world *world, size_t count, size_t element,
                         size_t acc, const plan_prices *prices)
{
    return (cost_model){
        .world = world,
        .layout = {.collective = p->collective,
                   .ranks = p->ranks,
                   .chunks = p->chunks,
                   .count = count},
        .element = element,
        .acc = acc,
        .prices = prices,
    };
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

int cost_class(const cost_model *model, int rank, int peer)
{
    const plan_world *world = model->world;
    return plan_host_of(world, rank) == plan_host_of(world, peer) ? COST_NEAR : COST_FAR;
}

const plan_cost_params *cost_between(const cost_model *model, int rank, int peer)
{
    return cost_class(model, rank, peer) == COST_NEAR ? &model->prices->same_host
                                                      : &model->prices->other_host;
}

const plan_cost_params *cost_of_host(const cost_model *model)
{
    return model->world->hosts > 1 ? &model->prices->other_host : &model->prices->same_host;
}

static double alpha_of(const plan_cost_params *params, cost_way way)
{
    return way == COST_CARRIED ? params->alpha : params->alpha_ref;
}

static bool refers(const plan_cost_params *params, size_t bytes)
{
    return params->maps && bytes > 0 && bytes >= params->reference_min;
}

size_t cost_bytes(const cost_model *model, plan_loc loc)
{
    const bool sum = loc.wire == PLAN_WIRE_ACC || loc.buffer == PLAN_SCRATCH;
    return plan_span_of(&model->layout, PLAN_WIRE, loc.chunk, loc.chunks).count *
           (sum ? model->acc : model->element);
}

/* ---- Messages ------------------------------------------------------------------ */

static void send(timeline *line, const plan_cursor *at, plan_loc to, cost_way way)
{
    const int class = cost_class(line->model, at->plan->rank, to.rank);
    const plan_cost_params *params = cost_between(line->model, at->plan->rank, to.rank);
    line->now += alpha_of(params, way) / 4;
    cost_post post = {.departure = line->now, .bytes = cost_bytes(line->model, to), .way = way};
    double arrival = post.departure;
    if (way == COST_CARRIED) {
        post.departure = later(line->now, line->out_free[class]);
        arrival = line->out_free[class] = post.departure + (double)post.bytes * params->beta;
    }
    line->delivered = later(line->delivered, arrival + 3 * alpha_of(params, way) / 4);
    line->post(line->context, to.rank, &post);
}

/* The messages of a class that one step takes, in any order of arrival. */
typedef struct arrivals {
    bool any_carried;
    double first, last;  /* departures of the first and last carried message           */
    double on_link;      /* seconds that the link is busy with the carried messages    */
    double last_on_link; /* seconds that the link is busy with the last of them        */
    double here;         /* time at which the messages that are not carried have arrived */
    double handling;     /* seconds that the receiver spends on the messages           */
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

static cost_way expect(timeline *line, arrivals *of_class, const plan_cursor *at, plan_loc from)
{
    const plan_cost_params *params = cost_between(line->model, at->plan->rank, from.rank);
    arrivals *a = &of_class[cost_class(line->model, at->plan->rank, from.rank)];
    cost_post post = {.bytes = cost_bytes(line->model, from)};
    post.way = from.wire == PLAN_WIRE_DATA && refers(params, post.bytes) ? COST_REFERENCE
                                                                         : COST_CARRIED;
    line->take(line->context, from.rank, &post);
    const double alpha = alpha_of(params, post.way);
    a->handling += alpha / 4;
    if (post.way == COST_CARRIED)
        add_carried(a, post.departure, (double)post.bytes * params->beta);
    else
        a->here = later(a->here, post.departure + alpha / 2);
    return post.way;
}

/* Waits for the messages. A link carries one message after the other, and each message only after
 * it was sent. */
static void await(timeline *line, arrivals *of_class)
{
    const plan_prices *prices = line->model->prices;
    const double alpha[] = {prices->same_host.alpha, prices->other_host.alpha};
    for (int class = 0; class < COST_CLASSES; class ++) {
        arrivals *a = &of_class[class];
        double *in_free = &line->in_free[class];
        if (a->any_carried) {
            *in_free = later(later(*in_free, a->first) + a->on_link, a->last + a->last_on_link);
            a->here = later(a->here, *in_free + alpha[class] / 2);
        }
        line->now = later(line->now, a->here);
    }
    line->begun = line->now;
    line->now += of_class[COST_NEAR].handling + of_class[COST_FAR].handling;
}

static void run_kernel(timeline *line, size_t bytes)
{
    line->now += (double)bytes * cost_of_host(line->model)->gamma;
}

/* ---- Steps --------------------------------------------------------------------- */

static void fold_step(timeline *line, const plan_cursor *at, const plan_step *step)
{
    arrivals of_class[COST_CLASSES] = {0};
    size_t touched = 0;
    for (int i = 0; i < step->ins; i++) {
        const plan_loc in = plan_input(at, step, i);
        touched += cost_bytes(line->model, in);
        if (in.rank != at->plan->rank)
            expect(line, of_class, at, in);
    }
    await(line, of_class);
    for (int i = 0; i < step->outs; i++)
        touched += cost_bytes(line->model, plan_output(at, step, i));
    run_kernel(line, touched);
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = plan_output(at, step, i);
        if (out.rank == at->plan->rank)
            continue;
        const bool maps = cost_between(line->model, at->plan->rank, out.rank)->maps;
        send(line, at, out, maps && out.buffer == PLAN_DST ? COST_STORED : COST_CARRIED);
    }
}

void timeline_step(timeline *line, const plan_cursor *at)
{
    const plan_step *step = plan_at(at);
    line->begun = line->now;
    switch ((plan_kind)step->kind) {
    case PLAN_STEP_SEND: {
        const plan_loc to = plan_output(at, step, 0);
        const plan_cost_params *params = cost_between(line->model, at->plan->rank, to.rank);
        const bool refer = !step->eager && refers(params, cost_bytes(line->model, to));
        send(line, at, to, refer ? COST_REFERENCE : COST_CARRIED);
        break;
    }
    case PLAN_STEP_RECV: {
        const plan_loc from = plan_input(at, step, 0);
        arrivals of_class[COST_CLASSES] = {0};
        const cost_way way = expect(line, of_class, at, from);
        await(line, of_class);
        if (way == COST_REFERENCE)
            run_kernel(line, 2 * cost_bytes(line->model, from));
        break;
    }
    case PLAN_STEP_COPY:
        run_kernel(line, 2 * cost_bytes(line->model, plan_output(at, step, 0)));
        break;
    case PLAN_STEP_FOLD:
        fold_step(line, at, step);
        break;
    case PLAN_STEP_WAIT:
        line->now = later(line->now,
                          line->out_free[cost_class(line->model, at->plan->rank, step->peer)]);
        line->now = later(line->now, line->released(line->context, step->peer, step->back));
        break;
    }
}

double timeline_end(const timeline *line)
{
    return later(line->now, line->delivered);
}

/* In a hop, a rank takes the chunks, combines them with its own data if the collective reduces, and
 * sends them on. */
double cost_hop(const cost_model *model, const plan_cost_params *params, int chunks)
{
    const plan_facts *facts = plan_facts_of(model->layout.collective);
    const size_t elements = plan_span_of(&model->layout, PLAN_WIRE, 0, chunks).count;
    const double bytes = (double)(elements * model->element);
    const double sums = (double)(elements * model->acc);
    const double of_sum = params->alpha + sums * params->beta + (2 * sums + bytes) * params->gamma;
    const double of_result = refers(params, elements * model->element)
                                 ? params->alpha_ref + 2 * bytes * params->gamma
                                 : params->alpha + bytes * params->beta;
    if (facts->reduces && !facts->rooted && !facts->src_blocks)
        return (of_sum + of_result) / 2; /* sums go one way, and results the same way back */
    return facts->reduces ? of_sum : of_result;
}
