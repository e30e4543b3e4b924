/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost model. One rank's plan is priced as if all ranks walked alike: the k-th message
 * that comes in left its sender when this rank sent its own k-th. That is exact for plans
 * that treat ranks alike (ring, direct). A pipeline over all ranks takes its fill on top.
 */
#include "cost_line.h"

#include <math.h>
#include <stdlib.h>

/* What this rank has sent, and its peers therefore, too; taken in order. */
typedef struct mirror_queue {
    cost_post *posts;
    size_t first, count, cap;
    size_t ahead; /* messages taken whose counterparts this rank has still to send */
} mirror_queue;

typedef struct mirror {
    mirror_queue messages, acks;
    const cost_line *line;
    double read_by; /* when the latest reference will have been read */
    bool out_of_memory;
} mirror;

static bool make_room(mirror_queue *queue)
{
    if (queue->first == queue->count)
        queue->first = queue->count = 0;
    if (queue->count < queue->cap)
        return true;
    const size_t cap = queue->cap > 0 ? 2 * queue->cap : 64;
    cost_post *posts = realloc(queue->posts, cap * sizeof *posts);
    if (posts == NULL)
        return false;
    queue->posts = posts;
    queue->cap = cap;
    return true;
}

static bool push(mirror_queue *queue, const cost_post *post)
{
    if (queue->ahead > 0) {
        queue->ahead--;
        return true;
    }
    if (!make_room(queue))
        return false;
    queue->posts[queue->count++] = *post;
    return true;
}

static void mirror_post(void *context, int peer, bool ack, const cost_post *post)
{
    mirror *m = context;
    (void)peer;
    if (post->way == COST_REFERENCE)
        m->read_by = post->departure +
                     2 * (double)post->bytes * m->line->model->params->gamma;
    if (!push(ack ? &m->acks : &m->messages, post))
        m->out_of_memory = true;
}

/* A rank that takes more than it has sent, gets one message right behind the other; one that
 * only gives is acknowledged when its latest chunk has been read. */
static void mirror_take(void *context, int peer, bool ack, cost_post *post)
{
    mirror *m = context;
    mirror_queue *queue = ack ? &m->acks : &m->messages;
    (void)peer;
    if (queue->first < queue->count) {
        *post = queue->posts[queue->first++];
        return;
    }
    queue->ahead++;
    if (ack)
        post->departure = m->read_by;
}

double plan_cost(const plan *p, size_t count, size_t element, size_t acc,
                 const plan_cost_params *params)
{
    const cost_model model = cost_model_of(p, count, element, acc, params);
    mirror m = {0};
    cost_line line = {.model = &model, .context = &m, .post = mirror_post, .take = mirror_take};
    m.line = &line;
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at))
        cost_step(&line, &at);
    free(m.messages.posts);
    free(m.acks.posts);
    if (m.out_of_memory)
        return HUGE_VAL;
    return params->overhead + cost_end(&line) + p->fill * cost_hop(&model);
}

static void count_step(const cost_model *model, const plan_cursor *at, const plan_step *step,
                       uint64_t *bytes, uint64_t *messages)
{
    for (int i = 0; i < step->outs; i++) {
        plan_loc to = plan_output(at, step, i);
        if (to.rank == at->plan->rank)
            continue;
        if (step->kind == PLAN_STEP_SEND)
            to.buffer = plan_input(at, step, 0).buffer;
        *bytes += cost_bytes(model, to, step->wire_out);
        *messages += 1;
    }
}

void plan_traffic(const plan *p, size_t count, size_t element, size_t acc, uint64_t *bytes,
                  uint64_t *messages)
{
    const cost_model model = cost_model_of(p, count, element, acc, NULL);
    *bytes = *messages = 0;
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        const plan_step *step = plan_at(&at);
        if (step->kind != PLAN_STEP_ACK)
            count_step(&model, &at, step, bytes, messages);
    }
}
