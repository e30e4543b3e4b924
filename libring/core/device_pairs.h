/* SPDX-License-Identifier: Apache-2.0
 *
 * device_pairs: lets accelerators run sends and receives, and the collectives in which only two
 * ranks know each count: gather_v, scatter_v and all_to_all_v. They have no program. The
 * accelerator gets a list of messages at each call, and runs those of a group in any order.
 */
#ifndef RING_CORE_DEVICE_PAIRS_H
#define RING_CORE_DEVICE_PAIRS_H

#include "accelerator_programs.h"
#include "prepared.h"

/** @return true if accelerators run calls of these facts as a list of messages. */
static inline bool device_pairs_are(const plan_facts *facts)
{
    return facts->pairwise || (facts->uneven && facts->personalized);
}

/** @return true if the communicator's accelerators run such calls. Then a pair of ranks without
 *  bytes for each other exchanges nothing in a v-form, since a rank without any bytes cannot know
 *  the kind of memory of the others. It is the same on all ranks. */
bool device_pairs_run(const ring_comm *comm);

/** Completes a program that has no ops. Sends and receives take their numbers from the channel of
 *  those that the host drives. */
ring_status device_pairs_keep(ring_comm *comm, program *p);
/** Starts the v-form @p first, or all sends and receives of its communicator in the list from
 *  @p first to before @p end in one run, as device_call_start() does. */
ring_status device_pairs_start(prepared_call *first, const prepared_call *end);

/** @return true if the work is a receive that differs from the peer's message. */
bool device_pairs_differ(const work *w, const accelerator_verdict *v);
/** @return the elements that a v-form receives from a rank. */
size_t device_pairs_count(const work *w, int rank);
/** Reports sends and receives that accelerators have not completed for a long time to their peers,
 *  which may have made the matching calls with memory of the host.
 *  @return RING_ERR_MISMATCH if the host has received a message instead. */
ring_status device_pairs_check_stalled(const ring_comm *comm);

#endif
