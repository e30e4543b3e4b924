/* SPDX-License-Identifier: Apache-2.0
 * channel_in: messages that arrive. */
#ifndef RING_CORE_CHANNEL_IN_H
#define RING_CORE_CHANNEL_IN_H

#include "comm.h"

/** A frame at the front of the link. */
typedef struct arrival {
    const transport_frame *frame;
    const char *payload; /* of a reference: the whole message, NULL if it is to be got; else
                            NULL while not all is here                                    */
    size_t bytes;        /* of the frame, or of the whole message that is referred to */
    bool whole;          /* by reference or stored                                        */
} arrival;

/** The next frame of message @p number, which has @p total bytes, @p done of them taken.
 *  RING_IN_PROGRESS when it is not here, or another message comes first. */
ring_status channel_peek(work *w, int32_t from, uint64_t number, size_t total, size_t done,
                         size_t segment, arrival *in);
/** Returns the frame to the link; @p last ends the message. */
void channel_consume(work *w, int32_t from, const arrival *in, bool last);

#endif
