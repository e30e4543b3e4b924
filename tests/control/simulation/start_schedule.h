/* SPDX-License-Identifier: Apache-2.0
 *
 * start schedule: a start of some ranks and its faults, and the records of the ranks.
 *
 *     schedule.c   draws it, and runs many
 *     rank_life.c  the program of each rank, and the faults
 *     judgement.c  the judgement on the records
 */
#ifndef TEST_CONTROL_START_SCHEDULE_H
#define TEST_CONTROL_START_SCHEDULE_H

#include "simulated_ranks.h"

#define PEER_TIMEOUT 2.0
#define INIT_TIMEOUT 6.0
enum { FAULTS = 2 };

typedef enum fault_kind {
    KILL,
    BOTH,
    HOST,
    STOP,
    CUT,
    PAUSE,
    REPORT,
    ALL_REPORT,
    REFUSE,
    FAIL,
    FAULT_KINDS
} fault_kind;
extern const char *const fault_names[FAULT_KINDS];

enum { BIRTH, LINKED, SHRINKING, MOMENTS };

typedef struct fault {
    fault_kind kind;
    int rank, other;
    unsigned call;  /* of the rank; of a report: the round */
    int since;      /* the moment from which its calls are counted */
    double seconds; /* SIM_NEVER: for good */
    bool ends;      /* of a report: the rank's process ends right after it */
    bool happened;
    double at;
    int in;             /* of a report: the communicator */
    const char *during; /* the rank's call */
} fault;

/** The communicator of the start, and one of some of its ranks. */
enum { ALL, PART, COMMUNICATORS };

/** The end of a communicator, as a rank knows it. */
typedef struct end {
    ring_status status;
    char text[CONTROL_TEXT];
    int wakes;
    double woken_at;
} end;

typedef struct record {
    const char *call; /* that runs, or ran last */
    double begun, limit;
    bool started, linked, over; /* over: the rank's program has come to its end */
    ring_status joined;
    end ends[COMMUNICATORS];
    ring_status shrunk;
    char shrink_text[200];
    unsigned calls;        /* of the kernel */
    unsigned had[MOMENTS]; /* so many at that moment; 0: not reached yet */
    uint64_t new_id;
    int new_size;
    double left_at; /* SIM_NEVER: it has not */
    bool needs_way; /* it is broken in a call that goes on without rank 0, and others had left */
    bool broken;    /* something was not as it must be: why */
    char why[256];
} record;

typedef struct schedule {
    uint64_t seed;
    int size, host_of[SIM_RANKS];
    double delay[SIM_RANKS];
    int rounds;
    bool shrinks;
    bool in_part[SIM_RANKS]; /* the ranks of the other communicator, if there is one */
    bool parts;              /* the others leave after the first round */
    sim_links links;
    fault faults[FAULTS];
    int fault_count;
    settings settings;
    ring_unique_id id;
    bool has_id;
    record records[SIM_RANKS];
} schedule;

/** The schedule that runs. */
extern schedule now;

/* ---- rank_life.c ------------------------------------------------------------------------ */

/** The program of a rank, whose record is @p context. */
void life_run(void *context);
/** Before each call of the kernel: what the schedule does to the rank. */
void life_on_call(int rank, unsigned calls);
/** Notes the first thing that was not as it must be. */
void life_break(record *r, const char *format, ...) RING_PRINTF(2, 3);

/* ---- judgement.c ------------------------------------------------------------------------ */

/** Known findings are failures too. */
extern bool judge_is_strict;
/** @return false: @p why. */
bool judge(char *why, size_t bytes);
/** Prints how often each known finding came. */
void judge_print_known(void);

#endif
