/* SPDX-License-Identifier: Apache-2.0
 *
 * console: shows the output of all ranks to the user. Rank 0's output is passed on unchanged; lines
 * of other ranks are never mixed and begin with "[rank] ". Lines longer than 64 KiB are split. An
 * unfinished line of rank 0, such as a prompt, is shown after 0.1 s.
 */
#ifndef LAUNCH_CONSOLE_H
#define LAUNCH_CONSOLE_H

#include "outlet.h"

typedef struct console console;

/** @param tag_all  rank 0's lines are prefixed too.
 *  @param logs     a folder for one file a rank, with all its output; NULL: none. */
ring_status console_open(int ranks, bool tag_all, const char *logs, console **out);
/** Frees the console, and output that still waits. */
void console_close(console *c);

/** @return true if rank 0 may have our own descriptor: a terminal, with no output to add. */
bool console_passes(const console *c, int stream);
/** @return false while the reader of @p stream is slower than the ranks. */
bool console_ready(const console *c, int stream);
/** Output of a rank (stream 1 or 2); count 0: its end. @return false: its reader has left. */
bool console_output(console *c, int rank, int stream, const char *data, size_t count);
/** @return the beginning of a rank's latest whole line; "": none, or it is the latest line of
 *  all. */
const char *console_last_line(const console *c, int rank);
/** A line about a host. */
void console_host(console *c, const char *host, const char *line, size_t length);
/** A line of the launcher itself, on standard error. */
void console_say(console *c, const char *format, ...) RING_PRINTF(2, 3);
void console_watch(console *c, poll_set *set);
/** Writes due lines. Reports once if writing fails, e.g. for lack of space: ranks go on without. */
void console_tick(console *c);
/** When console_tick() is due next. */
double console_due(const console *c);
/** @return true while output waits for its reader. */
bool console_waits(const console *c);
/** @return true if output was lost while its reader was there. */
bool console_lost(const console *c);

#endif
