/* SPDX-License-Identifier: Apache-2.0
 * operand: where an operand of a work's present op lies. */
#ifndef RING_CORE_OPERAND_H
#define RING_CORE_OPERAND_H

#include "comm.h"

/** The local memory of an operand at the present position of the work. */
char *operand_address(const work *w, const program_op *o, const operand *at);
/** The number of an operand's message on its channel. */
uint64_t operand_message(const work *w, const operand *at, bool out);

#endif
