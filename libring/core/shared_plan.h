/* SPDX-License-Identifier: Apache-2.0
 *
 * shared_plan: shares a plan between programs that differ only in their counts, because a plan does
 * not depend on counts. It lives as long as one of these programs.
 */
#ifndef RING_CORE_SHARED_PLAN_H
#define RING_CORE_SHARED_PLAN_H

#include "tuner.h"

typedef struct shared_plan {
    plan *plan;
    int root;
    tuner_choice choice;
    size_t bytes;
    int32_t holders; /* programs */
} shared_plan;

/** Builds the plan of a call. @param[out] out  the plan, with one holder. */
ring_status plans_build(const ring_comm *comm, const call_signature *call,
                        const tuner_choice *choice, shared_plan **out);
/** @return true if the plan serves this call and choice. */
bool plans_serve(const shared_plan *p, const call_signature *call, const tuner_choice *choice);
/** Drops one holder; NULL is allowed. */
void plans_drop(shared_plan *p);

#endif
