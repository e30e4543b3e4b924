/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the price of a plan by the cost model. Only one rank's plan is known, so all ranks are
 * assumed to do the same at the same times: the k-th message that this rank takes leaves its sender
 * when this rank sends its own k-th message. Messages are counted separately for each class of
 * pairs if the plan sends as many of each class as it takes, and together otherwise. This is exact
 * for plans that treat all ranks alike (ring, direct, halving among a power of two). For pipelines
 * and trees, the time to fill them is added.
 */
#include "timeline.h"

#include <math.h>
#include <stdlib.h>

/* Messages that this rank has sent. By assumption, its peers sent theirs at the same times. */
typedef struct sent_queue {
    cost_post *posts;
    size_t first, count, cap;
    size_t ahead; /* messages taken before this rank has sent their counterparts */
} sent_queue;

typedef struct mirror {
    sent_queue sent[COST_CLASSES];
    bool by_class; /* false: all messages use the first queue */
    const cost_model *model;
    int rank;
    double read_by; /* time at which the peer has read the latest reference */
    bool out_of_memory;
} mirror;

static bool make_room(sent_queue *q)
{
    if (q->first == q->count)
        q->first = q->count = 0;
    if (q->count < q->cap)
        return true;
    const size_t cap = q->cap > 0 ? 2 * q->cap : 64;
    cost_post *posts = realloc(q->posts, cap * sizeof *posts);
    if (posts == NULL)
        return false;
    q->posts = posts;
    q->cap = cap;
    return true;
}

static sent_queue *queue_of(mirror *m, int peer)
{
    return &m->sent[m->by_class ? cost_class(m->model, m->rank, peer) : 0];
}

static void mirror_post(void *context, int peer, const cost_post *post)
{
    mirror *m = context;
    const plan_cost_params *params = cost_between(m->model, m->rank, peer);
    sent_queue *q = queue_of(m, peer);
    if (post->way == COST_REFERENCE)
        m->read_by = post->departure + params->alpha_ref + 2 * (double)post->bytes * params->gamma;
    if (q->ahead > 0)
        q->ahead--;
    else if (make_room(q))
        q->posts[q->count++] = *post;
    else
        m->out_of_memory = true;
}

/* If this rank takes more messages than it has sent, the others arrive back to back. */
static void mirror_take(void *context, int peer, cost_post *post)
{
    mirror *m = context;
    sent_queue *q = queue_of(m, peer);
    if (q->first == q->count) {
        q->ahead++;
        return;
    }
    const cost_post *own = &q->posts[q->first++];
    post->departure = own->departure;
    if (cost_between(m->model, m->rank, peer)->maps)
        post->way = own->way;
}

static double mirror_released(void *context, int peer, int back)
{
    const mirror *m = context;
    (void)peer;
    (void)back;
    return m->read_by;
}

/* @return true if the plan takes as many messages of each class as it sends. */
static bool is_balanced(const plan *p, const cost_model *model)
{
    int64_t surplus[COST_CLASSES] = {0};
    for (int32_t i = 0; i < p->peer_count; i++)
        surplus[cost_class(model, p->rank, p->peers[i].rank)] += p->peers[i].sends -
                                                                 p->peers[i].recvs;
    return surplus[COST_NEAR] == 0 && surplus[COST_FAR] == 0;
}

static double cost_of_fill(const plan *p, const cost_model *model)
{
    const int chunks = p->fill_chunks > 0 ? p->fill_chunks : 1;
    return (p->fill - p->fill_far) * cost_hop(model, &model->prices->same_host, chunks) +
           p->fill_far * cost_hop(model, &model->prices->other_host, chunks);
}

ring_status plan_cost(const plan *p, const plan_world *world, size_t count, size_t element,
                      size_t acc, const plan_prices *prices, double *seconds)
{
    const cost_model model = cost_model_of(p, world, count, element, acc, prices);
    mirror m = {.model = &model, .rank = p->rank, .by_class = is_balanced(p, &model)};
    timeline line = {.model = &model,
                     .context = &m,
                     .post = mirror_post,
                     .take = mirror_take,
                     .released = mirror_released};
    const size_t eager_max = cost_of_host(&model)->eager_max;
    size_t eager = 0;
    *seconds = HUGE_VAL;
    if (eager_max > 0)
        RING_TRY(plan_eager_bytes(p, count, element, acc, &eager));
    if (eager > eager_max)
        return RING_OK;
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at))
        timeline_step(&line, &at);
    for (int class = 0; class < COST_CLASSES; class ++)
        free(m.sent[class].posts);
    if (m.out_of_memory)
        return fail(RING_ERR_MEMORY, "pricing a plan for %d rank%s", p->ranks, plural(p->ranks));
    *seconds = cost_of_host(&model)->overhead + timeline_end(&line) + cost_of_fill(p, &model);
    return RING_OK;
}

/* ---- Traffic ------------------------------------------------------------------- */

void plan_traffic(const plan *p, size_t count, size_t element, size_t acc, uint64_t *bytes,
                  uint64_t *messages)
{
    const cost_model model = cost_model_of(p, NULL, count, element, acc, NULL);
    *bytes = *messages = 0;
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        for (int i = 0; i < plan_at(&at)->outs; i++) {
            const plan_loc to = plan_output(&at, plan_at(&at), i);
            if (to.rank == p->rank)
                continue;
            *bytes += cost_bytes(&model, to);
            *messages += 1;
        }
    }
}

static uint64_t far_bytes(const cost_model *model, const plan_cursor *at, plan_loc loc)
{
    const int rank = at->plan->rank;
    return cost_class(model, rank, loc.rank) == COST_FAR ? cost_bytes(model, loc) : 0;
}

void plan_far_traffic(const plan *p, const plan_world *world, size_t count, size_t element,
                      size_t acc, uint64_t *out, uint64_t *in)
{
    const cost_model model = cost_model_of(p, world, count, element, acc, NULL);
    bool any = false;
    *out = *in = 0;
    for (int32_t i = 0; i < p->peer_count && !any; i++)
        any = cost_class(&model, p->rank, p->peers[i].rank) == COST_FAR;
    if (!any)
        return;
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        const plan_step *step = plan_at(&at);
        for (int i = 0; i < step->ins; i++)
            *in += far_bytes(&model, &at, plan_input(&at, step, i));
        for (int i = 0; i < step->outs; i++)
            *out += far_bytes(&model, &at, plan_output(&at, step, i));
    }
}

ring_status plan_eager_bytes(const plan *p, size_t count, size_t element, size_t acc, size_t *bytes)
{
    const cost_model model = cost_model_of(p, NULL, count, element, acc, NULL);
    bool eager = false;
    for (int32_t i = 0; i < p->step_count && !eager; i++)
        eager = p->steps[i].eager;
    *bytes = 0;
    if (!eager)
        return RING_OK;
    size_t *sent = calloc((size_t)p->peer_count, sizeof *sent);
    if (sent == NULL)
        return fail(RING_ERR_MEMORY, "pricing a plan for %d rank%s", p->ranks, plural(p->ranks));
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        if (!plan_at(&at)->eager)
            continue;
        const plan_loc to = plan_output(&at, plan_at(&at), 0);
        size_t *to_peer = &sent[plan_peer_of(p, to.rank) - p->peers];
        *to_peer += cost_bytes(&model, to);
        *bytes = max_size(*bytes, *to_peer);
    }
    free(sent);
    return RING_OK;
}
