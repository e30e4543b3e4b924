/* SPDX-License-Identifier: Apache-2.0
 * ucx_link: records what has happened to a link: its failure, completed gets, arrived frames, and
 * status that the peer must get. Nothing is sent here, so UCP's callbacks may call all of it. */
#ifndef RING_UCX_LINK_H
#define RING_UCX_LINK_H

#include "ucx.h"

/** Breaks the link as soon as all received frames have been consumed. */
void ucx_doom(ucx_link *l, ring_status status, const char *format, ...) RING_PRINTF(3, 4);
/** Wakes the thread that sleeps on the link, if there is one. */
void ucx_rouse(ucx_link *l);
/** Closes the tickets of all gets whose data has not begun to arrive. */
void ucx_gets_end(ucx_link *l, ring_status status);
/** Closes the ticket of one get. */
void ucx_got(ucx_link *l, uint64_t number, ring_status status);
bool ucx_is_alive(const ucx_link *l);
/** @return true if the peer has closed the socket. */
bool ucx_has_left(const ucx_link *l);

/** Makes a message with the status words leave soon. */
void ucx_owe(ucx_link *l);
/** Appends the link to the list of those that the next pass serves. */
void ucx_make_due(ucx_link *l);

/** @return the slot of the next frame, which may not have arrived. */
const transport_frame *ucx_oldest(const ucx_link *l);
bool ucx_has_frame(const ucx_link *l);
/** Counts completed sends. They complete in any order, but a frame counts only when all earlier
 *  ones are complete. */
void ucx_count_done(ucx_link *l);

#endif
