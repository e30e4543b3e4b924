/* SPDX-License-Identifier: Apache-2.0
 * operand: where an operand of a work's present op lies. */
#ifndef RING_CORE_OPERAND_H
#define RING_CORE_OPERAND_H

#include "comm.h"

/** The local memory of an operand at the present position of the work. */
char *operand_address(const work *w, const program_op *o, const operand *at);
/** The number of an operand's message on its channel. */
uint64_t operand_message(const work *w, const operand *at, bool out);
/** The message to an operand, of elements of @p width bytes. */
static inline posted operand_posted(work *w, const operand *to, size_t elements, size_t width)
{
    return (posted){.work = w,
                    .peer = to->peer,
                    .number = operand_message(w, to, true),
                    .bytes = elements * width,
                    .segment = w->program->segment * width};
}

#endif
