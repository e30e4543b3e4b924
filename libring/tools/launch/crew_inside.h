/* SPDX-License-Identifier: Apache-2.0
 * What a crew is made of, for the files of it: crew.c (how ranks end), crew_start.c,
 * crew_io.c (what they read and write). */
#ifndef LAUNCH_CREW_INSIDE_H
#define LAUNCH_CREW_INSIDE_H

#include "crew.h"
#include "warden.h"

enum { STREAMS = 2 };

enum rank_state { RANK_NOT_STARTED, RANK_RUNS, RANK_LINGERS, RANK_GONE };

typedef struct stream {
    crew *owner;
    int index, number; /* rank within the crew; 1 or 2 */
    int fd;            /* -1: closed                   */
} stream;

typedef struct rank_slot {
    enum rank_state state;
    pid_t pid;
    double ended;
    stream streams[STREAMS];
} rank_slot;

enum stop_phase { STOP_NONE, STOP_REPORT, STOP_TERM, STOP_KILL };

struct crew {
    int first_rank, count;
    rank_slot *ranks;
    launch_events events;
    warden guard;
    bytes input; /* for rank 0 */
    int input_fd;
    bool patient; /* what ended ranks left running may go on until crew_kill() */
    enum stop_phase phase;
    double phase_ends;
};

/** Reads what the rank has written so far, and no more than a pipe can hold. */
void crew_read_rest(rank_slot *rank);
/** Closes one stream. @param tell  output() shall hear of its end. */
void crew_close_stream(stream *s, bool tell);
void crew_close_rank(rank_slot *rank);

#endif
