/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost model. One rank's plan is priced as if all ranks walked alike: the k-th message
 * that comes in left its sender when this rank sent its own k-th. That is exact for plans
 * that treat ranks alike (ring, direct, halving among a power of two). Pipelines and trees take
 * their fill on top.
 */
#include "timeline.h"

#include <math.h>
#include <stdlib.h>

/* What this rank has sent, and its peers therefore, too; taken in order. */
typedef struct mirror {
    cost_post *posts;
    size_t first, count, cap;
    size_t ahead; /* messages taken whose counterparts this rank has still to send */
    const cost_model *model;
    int rank;
    double read_by; /* when the latest reference will have been read */
    bool out_of_memory;
} mirror;

static bool make_room(mirror *m)
{
    if (m->first == m->count)
        m->first = m->count = 0;
    if (m->count < m->cap)
        return true;
    const size_t cap = m->cap > 0 ? 2 * m->cap : 64;
    cost_post *posts = realloc(m->posts, cap * sizeof *posts);
    if (posts == NULL)
        return false;
    m->posts = posts;
    m->cap = cap;
    return true;
}

static void mirror_post(void *context, int peer, const cost_post *post)
{
    mirror *m = context;
    const plan_cost_params *params = cost_between(m->model, m->rank, peer);
    if (post->way == COST_REFERENCE)
        m->read_by = post->departure + params->alpha_ref + 2 * (double)post->bytes * params->gamma;
    if (m->ahead > 0)
        m->ahead--;
    else if (make_room(m))
        m->posts[m->count++] = *post;
    else
        m->out_of_memory = true;
}

/* A rank that takes more than it has sent gets one message right behind the other. */
static void mirror_take(void *context, int peer, cost_post *post)
{
    mirror *m = context;
    if (m->first == m->count) {
        m->ahead++;
        return;
    }
    const cost_post *own = &m->posts[m->first++];
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

static double cost_of_fill(const plan *p, const cost_model *model)
{
    const int chunks = p->fill_chunks > 0 ? p->fill_chunks : 1;
    return (p->fill - p->fill_far) * cost_hop(model, &model->prices->same_host, chunks) +
           p->fill_far * cost_hop(model, &model->prices->other_host, chunks);
}

static ring_status is_too_eager(const plan *p, const cost_model *model, bool *too_eager)
{
    const size_t most = cost_of_host(model)->eager_max;
    size_t bytes = 0;
    if (most > 0)
        RING_TRY(plan_eager_bytes(p, model->layout.count, model->element, model->acc, &bytes));
    *too_eager = bytes > most;
    return RING_OK;
}

ring_status plan_cost(const plan *p, const plan_world *world, size_t count, size_t element,
                      size_t acc, const plan_prices *prices, double *seconds)
{
    bool too_eager;
    const cost_model model = cost_model_of(p, world, count, element, acc, prices);
    mirror m = {.model = &model, .rank = p->rank};
    timeline line = {.model = &model,
                     .context = &m,
                     .post = mirror_post,
                     .take = mirror_take,
                     .released = mirror_released};
    *seconds = HUGE_VAL;
    RING_TRY(is_too_eager(p, &model, &too_eager));
    if (too_eager)
        return RING_OK;
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at))
        timeline_step(&line, &at);
    free(m.posts);
    if (m.out_of_memory)
        return fail(RING_ERR_MEMORY, "pricing a plan for %d ranks", p->ranks);
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

static bool sends_eagerly(const plan *p)
{
    bool eager = false;
    for (int32_t i = 0; i < p->step_count && !eager; i++)
        eager = p->steps[i].eager;
    return eager;
}

ring_status plan_eager_bytes(const plan *p, size_t count, size_t element, size_t acc, size_t *bytes)
{
    const cost_model model = cost_model_of(p, NULL, count, element, acc, NULL);
    *bytes = 0;
    if (!sends_eagerly(p))
        return RING_OK;
    size_t *sent = calloc((size_t)p->peer_count, sizeof *sent);
    if (sent == NULL)
        return fail(RING_ERR_MEMORY, "pricing a plan for %d ranks", p->ranks);
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
