/* SPDX-License-Identifier: Apache-2.0
 * ucx_link: ends, debts and arrivals of a link, noted where they are found out. */
#ifndef RING_UCX_LINK_H
#define RING_UCX_LINK_H

#include "ucx.h"

/** Breaks the link when all that has come is taken. */
void ucx_doom(ucx_link *l, ring_status status, const char *format, ...) RING_PRINTF(3, 4);
void ucx_rouse(ucx_link *l);
/** No ticket is used from here on, unless @p status tells how they ended. */
void ucx_gets_end(ucx_link *l, ring_status status);
/** A get is over. */
void ucx_got(ucx_link *l, uint64_t number, ring_status status);
bool ucx_is_alive(const ucx_link *l);
/** The peer has closed the socket. */
bool ucx_has_left(const ucx_link *l);

/** Has a message with the words leave soon. */
void ucx_owe(ucx_link *l);
void ucx_make_due(ucx_link *l);

/** The slot of the next frame, which may not have come. */
const transport_frame *ucx_oldest(const ucx_link *l);
bool ucx_has_frame(const ucx_link *l);
/** Requests are over in any order; frames count when all before them are. */
void ucx_count_done(ucx_link *l);

#endif
