/* SPDX-License-Identifier: Apache-2.0
 *
 * shell: runs a command line as a user does and keeps what it says.
 */
#ifndef TESTS_PERF_SHELL_H
#define TESTS_PERF_SHELL_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/** Standard output and standard error of the latest command. */
extern char shell_said[1 << 16];

/** Runs a command. @return its exit status, -1 if it did not end by itself. */
int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** @return how often @p text occurs in the output. */
size_t shell_count(const char *text);

/** Calls @p row(words, count) for each table row. @return the number of rows. */
size_t shell_rows(void (*row)(char **words, size_t count));

/** A fresh name for a file that the command writes; removed by shell_forget(). */
const char *shell_file(void);
void shell_forget(void);

/** Runs @p command, which ends with the name of its file, for a place where a link to a file lies.
 *  @return true if the link was replaced by a file of mode 0600 and its target is still empty. */
bool shell_replaces_link(const char *command);

/** Parses a file of JSON lines and calls @p line for each. @return the number of lines, -1 if a
 * line is not JSON. */
int shell_json_lines(const char *file, void (*line)(const cJSON *object));

#endif
