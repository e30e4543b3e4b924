/* SPDX-License-Identifier: Apache-2.0
 * The internals of local_ranks, for its files: local_ranks.c (ends of ranks), local_ranks_start.c,
 * local_ranks_io.c (input and output). */
#ifndef LAUNCH_LOCAL_RANKS_INSIDE_H
#define LAUNCH_LOCAL_RANKS_INSIDE_H

#include "local_ranks.h"
#include "reaper.h"

enum { STREAMS = 2 };

enum rank_state { RANK_NOT_STARTED, RANK_RUNS, RANK_LINGERS, RANK_GONE };

typedef struct local_ranks local_ranks;

typedef struct stream {
    local_ranks *owner;
    int index, number; /* rank on this host; 1 or 2 */
    int fd;            /* -1: closed                   */
} stream;

typedef struct rank_slot {
    enum rank_state state;
    pid_t pid;
    double ended;
    stream streams[STREAMS];
} rank_slot;

enum stop_phase { STOP_NONE, STOP_REPORT, STOP_TERM, STOP_KILL };

struct local_ranks {
    host_ranks head;
    int first_rank, count;
    rank_slot *ranks;
    launch_events events;
    reaper guard;
    bytes input; /* for rank 0 */
    int input_fd;
    bool patient; /* processes of ended ranks may go on until kill() */
    enum stop_phase phase;
    double phase_ends;
};

/** Reads the rank's output so far, at most a pipe's. */
void local_ranks_read_rest(rank_slot *rank);
/** Closes one stream. @param tell  report its end to output(). */
void local_ranks_close_stream(stream *s, bool tell);
void local_ranks_close_rank(rank_slot *rank);

/* Operations outside of local_ranks.c, which has their table. */
extern const host_ranks_ops local_ranks_ops;
void local_ranks_watch(host_ranks *h, poll_set *set);
bool local_ranks_hungry(const host_ranks *h);
void local_ranks_feed(host_ranks *h, const char *data, size_t count);

#endif
