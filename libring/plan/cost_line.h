/* SPDX-License-Identifier: Apache-2.0
 *
 * cost_line: the time line of one rank under the cost model. A message costs its sender and
 * its taker a quarter of alpha each, one message at a time; the other half of alpha is the
 * flight, which messages under way at once share. Carried bytes leave and arrive one after
 * the other at beta, both directions at once; bytes by reference or store cost what the
 * kernels that touch them cost. SENDs only post.
 */
#ifndef RING_PLAN_COST_LINE_H
#define RING_PLAN_COST_LINE_H

#include "plan.h"

typedef struct cost_model {
    plan_layout layout;
    size_t element, acc; /* bytes */
    const plan_cost_params *params;
} cost_model;

typedef enum cost_way { COST_CARRIED, COST_REFERENCE, COST_STORED } cost_way;

/** A message under way. */
typedef struct cost_post {
    double departure;
    size_t bytes;
    cost_way way;
} cost_post;

typedef struct cost_line {
    const cost_model *model;
    double now;               /* the rank is busy until then                         */
    double begun;             /* when the present step could begin                   */
    double out_free, in_free; /* the link is busy until then                         */
    void *context;            /* for the two below: where messages go and come from    */
    void (*post)(void *context, int peer, bool ack, const cost_post *post);
    /** @param[in,out] post  what is expected; replaced by what comes, if that is known. */
    void (*take)(void *context, int peer, bool ack, cost_post *post);
} cost_line;

cost_model cost_model_of(const plan *p, size_t count, size_t element, size_t acc,
                         const plan_cost_params *params);

/** Moves the line over the step under the cursor. */
void cost_step(cost_line *line, const plan_cursor *at);

/** @return true if chunks are long enough for references, which acknowledgements follow. */
bool cost_acknowledges(const cost_model *model);

/** When everything posted has left, too. */
double cost_end(const cost_line *line);

/** Payload bytes of a message with this loc. */
size_t cost_bytes(const cost_model *model, plan_loc loc, plan_wire wire);

/** Seconds that a chunk takes from one rank of a pipeline to the next. */
double cost_hop(const cost_model *model);

#endif
