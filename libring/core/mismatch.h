/* SPDX-License-Identifier: Apache-2.0
 * mismatch: the error of ranks that made different calls. All return RING_ERR_MISMATCH. */
#ifndef RING_CORE_MISMATCH_H
#define RING_CORE_MISMATCH_H

#include "comm.h"

/** Two ranks made different calls. */
ring_status mismatch_differ(const ring_comm *comm, const call_signature *mine, uint64_t my_seq,
                            int rank, const call_signature *theirs, uint64_t their_seq);
/** @p refuser refused a call that @p caller made. */
ring_status mismatch_refused(const ring_comm *comm, int caller, const call_signature *call,
                             uint64_t seq, int refuser, const char *why);
/** This rank refused a call that @p rank made. */
ring_status mismatch_refused_here(const ring_comm *comm, int rank, const call_signature *theirs,
                                  uint64_t seq);

#endif
