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

/** The next frame of an operand's message, which has @p total elements, w->position of them taken.
 *  RING_IN_PROGRESS when it is not here, or another message comes first: the work waits for it. */
ring_status channel_peek(work *w, const operand *from, size_t total, arrival *in);
/** Returns the frame to the link; @p last ends the message. */
void channel_consume(work *w, int32_t from, const arrival *in, bool last);

#endif
