/* SPDX-License-Identifier: Apache-2.0
 *
 * id maker: serves the unique ids that this process has made for ranks of any process. The control
 * thread listens for an id until rank 0 takes over its listener in this process, or registers its
 * own address from another process. The other ranks are held until then, and then redirected to
 * rank 0. An id that is not used is closed after RING_INIT_TIMEOUT. Must be called without the
 * lock.
 */
#ifndef RING_CONTROL_ID_MAKER_H
#define RING_CONTROL_ID_MAKER_H

#include "base.h"

/** Listens for @p id on the bound socket @p bound, for @p seconds if no rank 0 comes. Owns the
 * socket after this, even if it fails. @return RING_OK, RING_ERR_MEMORY or RING_ERR_SYSTEM. */
ring_status id_maker_serve(const ring_unique_id *id, int bound, double seconds);
/** Ends the service, so that rank 0 joins with the listener. Ranks that were held dial it again.
 *  @return the listener, which the caller then owns; -1 if this process has not made @p id, or
 *  another rank 0 has registered, or the id has expired. */
int id_maker_take(const ring_unique_id *id);

#endif
