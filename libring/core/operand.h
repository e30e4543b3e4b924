/* SPDX-License-Identifier: Apache-2.0
 * operand: finds the memory and the message of an operand of the op that a work is running. */
#ifndef RING_CORE_OPERAND_H
#define RING_CORE_OPERAND_H

#include "comm.h"

/** @return the local memory of an operand at the work's current position. */
char *operand_address(const work *w, const program_op *o, const operand *at);
/** @return the number of an operand's message on its channel.
 *  @param out  true if the operand is sent, false if it is received. */
uint64_t operand_message(const work *w, const operand *at, bool out);
/** @return a message to the operand @p to, of @p elements elements of @p width bytes each. The
 *  caller sets its data. */
static inline posted operand_posted(work *w, const operand *to, size_t elements, size_t width)
{
    return (posted){.work = w,
                    .peer = to->peer,
                    .number = operand_message(w, to, true),
                    .bytes = elements * width,
                    .segment = w->program->segment * width};
}

#endif
