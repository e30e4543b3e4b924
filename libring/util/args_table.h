/* SPDX-License-Identifier: Apache-2.0
 * args_table: the rows of a program and those of all programs, as one table. */
#ifndef RING_ARGS_TABLE_H
#define RING_ARGS_TABLE_H

#include "args.h"

typedef struct args_table {
    const args_program *program;
    size_t own, count; /* rows of the program; with the common ones */
} args_table;

const args_row *args_at(const args_table *table, size_t index);
/** @return the row of a letter; NULL: none has it. */
const args_row *args_letter(const args_table *table, int letter);

/** Looks at the options, so that a wrong one gets a good answer, before argp does; spells them as
 *  their rows do. */
void args_check(const args_table *table, int argc, char **argv);

#endif
