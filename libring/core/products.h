/* SPDX-License-Identifier: Apache-2.0
 * products: computes the products of src and this rank's factor before a sum (RING_PREMUL_SUM). */
#ifndef RING_CORE_PRODUCTS_H
#define RING_CORE_PRODUCTS_H

#include "comm.h"

/** Finds memory for the products of src and this rank's factor, and makes it the call's src. */
ring_status products_place(ring_comm *comm, const program *p, call_buffers *b);
/** Computes as many products as the turn allows. @return RING_IN_PROGRESS if the turn has ended
 *  before all were computed. @param[out] moved  set to true if products were computed. */
ring_status products_make(work *w, bool *moved);

#endif
