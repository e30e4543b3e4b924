/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline: the times of one rank's steps under the cost model. A message costs its sender and its
 * taker a quarter of alpha each, one message at a time; the other half of alpha is the flight,
 * which messages under way at once share. Carried bytes leave and arrive one after the other at
 * beta, both directions at once, those of a host apart from the others; bytes by reference or store
 * cost the time of the kernels that touch them. SENDs only post.
 */
#ifndef RING_PLAN_TIMELINE_H
#define RING_PLAN_TIMELINE_H

#include "plan.h"

typedef struct cost_model {
    const plan_world *world;
    plan_layout layout;
    size_t element, acc; /* bytes */
    const plan_prices *prices;
} cost_model;

typedef enum cost_way { COST_CARRIED, COST_REFERENCE, COST_STORED } cost_way;

/** A message under way. */
typedef struct cost_post {
    double departure;
    size_t bytes;
    cost_way way;
} cost_post;

/** Pairs of ranks: of one host, or not. */
enum { COST_NEAR, COST_FAR, COST_CLASSES };

typedef struct timeline {
    const cost_model *model;
    double now;                                           /* the rank is busy until then */
    double begun;                                         /* when the present step could begin    */
    double out_free[COST_CLASSES], in_free[COST_CLASSES]; /* links are busy until then */
    double delivered; /* all that was posted can have been taken by then */
    void *context;    /* of the functions below: the other end of messages */
    void (*post)(void *context, int peer, const cost_post *post);
    /** @param[in,out] post  the expected message; replaced by the real one, if that is known. */
    void (*take)(void *context, int peer, cost_post *post);
    /** @return when the peer has read all references, but those in the last @p back messages. */
    double (*released)(void *context, int peer, int back);
} timeline;

cost_model cost_model_of(const plan *p, const plan_world *world, size_t count, size_t element,
                         size_t acc, const plan_prices *prices);

/** @return COST_NEAR or COST_FAR. */
int cost_class(const cost_model *model, int rank, int peer);
const plan_cost_params *cost_between(const cost_model *model, int rank, int peer);
/** The price of kernels and calls: as on the weaker class of pairs that there is. */
const plan_cost_params *cost_of_host(const cost_model *model);

/** Advances the time line by the step under the cursor. */
void timeline_step(timeline *line, const plan_cursor *at);

/** When all posted messages have been taken, too. */
double timeline_end(const timeline *line);

/** Bytes of an operand: in its buffer, or in the message. */
size_t cost_bytes(const cost_model *model, plan_loc loc);

/** Seconds that @p chunks chunks take from one rank of a pipeline to the next. */
double cost_hop(const cost_model *model, const plan_cost_params *params, int chunks);

#endif
