/* SPDX-License-Identifier: Apache-2.0
 * tuner: chooses algorithm and chunks, from what every rank knows. */
#ifndef RING_CORE_TUNER_H
#define RING_CORE_TUNER_H

#include "comm.h"

typedef struct tuner_choice {
    const algo *algorithm; /* NULL: between a pair there is no choice */
    int chunks;
    bool eager; /* of a pair: the send does not wait for its receiver */
} tuner_choice;
ring_status tuner_new(const ring_comm *comm, struct tuner **out);
void tuner_free(struct tuner *t);
ring_status tuner_choose(struct tuner *t, const call_signature *call, tuner_choice *choice);
/** Seconds that the cost model predicts for a call; 0 if it cannot.
 *  @param longest  elements of its longest block, also where ranks do not agree on it. */
double tuner_predict(struct tuner *t, const call_signature *call, size_t longest);

#endif
