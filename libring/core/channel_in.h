/* SPDX-License-Identifier: Apache-2.0
 * channel_in: gives a work the frames of the message that it expects next from a peer. */
#ifndef RING_CORE_CHANNEL_IN_H
#define RING_CORE_CHANNEL_IN_H

#include "comm.h"

/** A frame at the front of the link. */
typedef struct arrival {
    const transport_frame *frame;
    const char *payload; /* for a reference: the whole message, or NULL if it cannot be mapped and
                            must be fetched. Else the frame's bytes, or NULL until all of them have
                            arrived */
    size_t bytes;        /* of the frame, or of the whole message if it is a reference */
    bool whole;          /* the frame stands for the whole message: it is a reference, or reports
                            that the message is already stored in dst */
} arrival;

/** Finds the next frame of an operand's message, which has @p total elements; the work has consumed
 *  step.position of them. @return RING_IN_PROGRESS if the frame has not arrived or an earlier
 *  message is not complete; the work then waits on the channel. */
ring_status channel_peek(work *w, const operand *from, size_t total, arrival *in);
/** Returns the frame to the link. @param last  it is the last frame of its message. */
void channel_consume(work *w, int32_t from, const arrival *in, bool last);

#endif
