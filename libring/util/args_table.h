/* SPDX-License-Identifier: Apache-2.0
 * args_table: the rows of a program and those of all programs, as one table. */
#ifndef RING_ARGS_TABLE_H
#define RING_ARGS_TABLE_H

#include "args.h"

typedef struct args_table {
    const args_program *program;
    size_t own, count; /* rows of the program; with the common ones */
} args_table;

/** The table of a program, which messages name from here on. */
args_table args_open(const args_program *program);
const args_row *args_at(const args_table *table, size_t index);
/** @return the row of a letter; NULL: none has it. */
const args_row *args_letter(const args_table *table, int letter);
bool args_is_heading(const args_row *row);

#endif
