/* SPDX-License-Identifier: Apache-2.0
 * args_table: joins the rows of a program and those that all programs have (--help, --version) into
 * one table. */
#ifndef RING_ARGS_TABLE_H
#define RING_ARGS_TABLE_H

#include "args.h"

typedef struct args_table {
    const args_program *program;
    size_t own, count; /* number of the program's rows, and of all rows */
} args_table;

/** Makes the table of a program. Messages begin with the program's name from here on. */
args_table args_open(const args_program *program);
const args_row *args_at(const args_table *table, size_t index);
/** @return the first row with a letter, or NULL. */
const args_row *args_letter(const args_table *table, int letter);
bool args_is_heading(const args_row *row);

#endif
