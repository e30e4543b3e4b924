/* SPDX-License-Identifier: Apache-2.0
 *
 * console: shows the output of all ranks to the user. Rank 0's output is passed on unchanged. Lines
 * of other ranks begin with "[rank] " and are never mixed with each other. Lines longer than 64 KiB
 * are split. An unfinished line of rank 0, such as a prompt, is shown after 0.1 s. In these
 * functions a stream is 1 for standard output or 2 for standard error.
 */
#ifndef LAUNCH_CONSOLE_H
#define LAUNCH_CONSOLE_H

#include "outlet.h"

typedef struct console console;

/** @param tag_all  put "[0] " before rank 0's lines, too.
 *  @param logs     a folder, in which each rank gets a file with all its output; NULL: no files. */
ring_status console_open(int ranks, bool tag_all, const char *logs, console **out);
/** Frees the console, and discards output that is not written yet. */
void console_close(console *c);

/** @return true if rank 0 can write directly to ringrun's own descriptor of @p stream: a terminal,
 *  with neither prefixes nor log files. */
bool console_passes(const console *c, int stream);
/** @return false while too much output of @p stream waits for a slow reader. */
bool console_ready(const console *c, int stream);
/** Takes output of a rank; count 0: the stream has ended.
 *  @return false if nobody reads this output any more. */
bool console_output(console *c, int rank, int stream, const char *data, size_t count);
/** @return the beginning of the latest complete line of a rank. "" if there is none, or if it is
 *  also the latest line of all ranks, which the user sees anyway. */
const char *console_last_line(const console *c, int rank);
/** Prints a line of ssh or ringrun on another host, with the name of the host before it. */
void console_host(console *c, const char *host, const char *line, size_t length);
/** Prints a line of the launcher itself on standard error. */
void console_say(console *c, const char *format, ...) RING_PRINTF(2, 3);
/** Adds the outlets that have output to write. */
void console_watch(console *c, poll_set *set);
/** Shows unfinished lines that are due. Reports once if writing fails, e.g. for lack of space; the
 *  ranks continue without output. */
void console_tick(console *c);
/** @return the time (clock_now()) at which console_tick() is due next. */
double console_due(const console *c);
/** @return true while there is output that is not written yet. */
bool console_waits(const console *c);
/** @return true if output was lost for another reason than that its reader has left. */
bool console_lost(const console *c);

#endif
