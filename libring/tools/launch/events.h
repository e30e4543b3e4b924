/* SPDX-License-Identifier: Apache-2.0
 *
 * events: events of ranks, reported in the same way whether they run here or elsewhere.
 */
#ifndef LAUNCH_EVENTS_H
#define LAUNCH_EVENTS_H

#include "base.h"

/** The end of a rank. */
typedef struct rank_end {
    int rank, pid;
    int code;      /* exit code; 127 if it never started */
    int signal;    /* that killed it, 0: none */
    char why[320]; /* not "": it did not end by itself, for this reason */
} rank_end;

typedef struct launch_events {
    void *context;
    /** @return false while @p stream (1, 2) should not be read. */
    bool (*ready)(void *context, int stream);
    /** Output of a rank; count 0: its end. @return false: no more is wanted. */
    bool (*output)(void *context, int rank, int stream, const char *data, size_t count);
    /** The rank has ended; all its output has been given to output(). */
    void (*ended)(void *context, const rank_end *end);
    /** The terminal has stopped the rank by SIGTTIN or SIGTTOU. NULL: there is no terminal. */
    void (*stopped)(void *context, int rank, int pid, int signal_number);
} launch_events;

#endif
