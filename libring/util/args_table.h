/* SPDX-License-Identifier: Apache-2.0
 * args_table: joins the rows of a program and those that all programs have (--help, --version) into
 * one table. */
#ifndef RING_ARGS_TABLE_H
#define RING_ARGS_TABLE_H

#include "args.h"

typedef struct args_table {
    const args_program *program;
    size_t own, count; /* number of the program's own rows, and of all rows */
} args_table;

/** Makes the table of a program. From then on messages begin with the program's name. */
args_table args_open(const args_program *program);
/** @return a row by its index; the program's own rows come first. */
const args_row *args_at(const args_table *table, size_t index);
/** @return the first row with a letter, or NULL. */
const args_row *args_letter(const args_table *table, int letter);
/** @return true if the row is a heading of --help. */
bool args_is_heading(const args_row *row);

#endif
