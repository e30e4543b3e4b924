/* SPDX-License-Identifier: Apache-2.0
 * tuner: chooses the algorithm and the number of chunks for a call. It uses only facts that are the
 * same on all ranks, so all ranks choose the same. */
#ifndef RING_CORE_TUNER_H
#define RING_CORE_TUNER_H

#include "accelerator_programs.h"
#include "comm.h"

typedef struct tuner_choice {
    const algo *algorithm; /* NULL: send and recv have no algorithm */
    int chunks;
    bool eager; /* for send and recv: the send does not wait for its receiver */
} tuner_choice;
/** Creates a tuner. @return RING_ERR_CONFIG if RING_ALGO is not the name of an algorithm. */
ring_status tuner_new(const ring_comm *comm, struct tuner **out);
/** Sets the prices of the calls that accelerators run. All ranks are on this host. It must be
 * called before the first such call. */
void tuner_use_device(struct tuner *t, const accelerator_terms *terms);
void tuner_free(struct tuner *t);
/** Chooses the algorithm of a call other than send and recv. The first call of a size class prices
 *  all algorithms; later calls of the class cost a table lookup. */
ring_status tuner_choose(struct tuner *t, const call_signature *call, tuner_choice *choice);
/** @param longest  elements of the call's longest block, even if ranks know different ones.
 *  @return the seconds that the cost model predicts for a call; 0 if it cannot. */
double tuner_predict(struct tuner *t, const call_signature *call, size_t longest);

#endif
