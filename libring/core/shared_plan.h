/* SPDX-License-Identifier: Apache-2.0
 *
 * shared_plan: shares a plan between programs that differ only in their counts, because a plan does
 * not depend on counts. The last of these programs frees it.
 */
#ifndef RING_CORE_SHARED_PLAN_H
#define RING_CORE_SHARED_PLAN_H

#include "tuner.h"

typedef struct shared_plan {
    plan *plan;
    int root;
    tuner_choice choice;
    size_t bytes;
    int32_t holders; /* number of programs that use the plan */
} shared_plan;

/** Builds the plan of a call. @param[out] out  the plan, with one holder, which drops it with
 *  plans_drop(). */
ring_status plans_build(const ring_comm *comm, const call_signature *call,
                        const tuner_choice *choice, shared_plan **out);
/** @return true if the plan is the one that plans_build() would build for this call and choice. */
bool plans_serve(const shared_plan *p, const call_signature *call, const tuner_choice *choice);
/** Drops one holder, and frees the plan with the last one. NULL is allowed. */
void plans_drop(shared_plan *p);

#endif
