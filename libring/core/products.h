/* SPDX-License-Identifier: Apache-2.0
 * products: src times this rank's factor (RING_PREMUL_SUM). */
#ifndef RING_CORE_PRODUCTS_H
#define RING_CORE_PRODUCTS_H

#include "comm.h"

/** Finds memory for the products of src and this rank's factor, which become the call's src. */
ring_status products_place(ring_comm *comm, const program *p, call_buffers *b);
/** Makes the products, as many as the turn may. RING_IN_PROGRESS: some are still missing. */
ring_status products_make(work *w, bool *moved);

#endif
