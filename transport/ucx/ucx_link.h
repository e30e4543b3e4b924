/* SPDX-License-Identifier: Apache-2.0
 * ucx_link: records the state of a link: its failure, completed gets, arrived frames, and whether
 * status words must be sent to the peer. These functions send nothing, so UCP's callbacks may call
 * them. */
#ifndef RING_UCX_LINK_H
#define RING_UCX_LINK_H

#include "ucx.h"

/** Records a failure that breaks the link as soon as all received frames have been consumed. Only
 *  the first failure counts. */
void ucx_doom(ucx_link *l, ring_status status, const char *format, ...) RING_PRINTF(3, 4);
/** Wakes the thread that sleeps on the link, if there is one. */
void ucx_rouse(ucx_link *l);
/** Closes the tickets of all gets whose data has not begun to arrive. */
void ucx_gets_end(ucx_link *l, ring_status status);
/** Ends get number @p number: closes its ticket with @p status. */
void ucx_got(ucx_link *l, uint64_t number, ring_status status);
/** @return true if the link is opening or open. */
bool ucx_is_alive(const ucx_link *l);
/** @return true if the peer has closed the socket. */
bool ucx_has_left(const ucx_link *l);

/** Makes one of the next passes send the status words, unless another message carries them
 *  before. */
void ucx_owe(ucx_link *l);
/** Adds the link to the list of links that the next pass serves. */
void ucx_make_due(ucx_link *l);

/** @return the slot of the next frame, which may not have arrived. */
const transport_frame *ucx_oldest(const ucx_link *l);
/** @return true if the next frame has arrived. */
bool ucx_has_frame(const ucx_link *l);
/** Counts completed sends. They complete in any order, but a frame counts only when the sends of
 *  all earlier frames are also complete. */
void ucx_count_done(ucx_link *l);

#endif
