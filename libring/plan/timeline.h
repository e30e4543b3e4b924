/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline: computes the times of one rank's steps under the cost model. A message occupies its
 * sender and its receiver for a quarter of alpha each. The other half of alpha is its time in
 * flight, and several messages can be in flight at the same time. Carried bytes leave and arrive
 * one after the other at beta; the two directions are independent of each other, and so are pairs
 * on one host and pairs on two. Bytes by reference or store cost the time of the kernels that
 * access them.
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

/** A message in flight. */
typedef struct cost_post {
    double departure;
    size_t bytes;
    cost_way way;
} cost_post;

/** The classes of pairs of ranks: on one host, and on two. */
enum { COST_NEAR, COST_FAR, COST_CLASSES };

typedef struct timeline {
    const cost_model *model;
    double now;   /* the rank is busy until this time                          */
    double begun; /* time at which the current step could begin                */
    double out_free[COST_CLASSES], in_free[COST_CLASSES]; /* links are busy until these times */
    double delivered; /* time at which all posted messages can have been taken     */
    void *context;    /* passed to the functions below, which stand for the peers  */
    void (*post)(void *context, int peer, const cost_post *post);
    /** @param[in,out] post  the message as the receiver expects it; the function replaces it by the
     *  message as it was sent, if it knows that. */
    void (*take)(void *context, int peer, cost_post *post);
    /** @return the time at which the peer has read all references except those in the last @p back
     *  messages. */
    double (*released)(void *context, int peer, int back);
} timeline;

cost_model cost_model_of(const plan *p, const plan_world *world, size_t count, size_t element,
                         size_t acc, const plan_prices *prices);

/** @return COST_NEAR or COST_FAR. */
int cost_class(const cost_model *model, int rank, int peer);
const plan_cost_params *cost_between(const cost_model *model, int rank, int peer);
/** @return the prices of kernels and calls: those of the weaker class of pairs in the world. */
const plan_cost_params *cost_of_host(const cost_model *model);

/** Advances the time line by the step under the cursor. */
void timeline_step(timeline *line, const plan_cursor *at);

/** @return the time at which the rank is done and all posted messages have been taken. */
double timeline_end(const timeline *line);

/** @return the bytes of an operand in its buffer or message. */
size_t cost_bytes(const cost_model *model, plan_loc loc);

/** @return the seconds that @p chunks chunks take from one rank of a pipeline to the next. */
double cost_hop(const cost_model *model, const plan_cost_params *params, int chunks);

#endif
