/* SPDX-License-Identifier: Apache-2.0
 * far_parts: declares the functions that the files of far memory's double share. */
#ifndef TEST_DOUBLES_FAR_PARTS_H
#define TEST_DOUBLES_FAR_PARTS_H

#include "far.h"

#include "accelerator.h"

enum { FAR_MOST_BYTES = 1 << 30 };

/* ---- far_memory.c ---- */
/** Far memory is mapped three times: without access where users see it, for the accelerator, and as
 *  adapters see it, from a file. */
extern struct far_views {
    char *seen, *real, *bus;
    int file;
} far_views;
bool far_has(const void *at);
size_t far_offset(const void *at);
/** Where the accelerator has it; memory of the host's is where it is. */
void *far_real(const void *at);
/** Adapters see now what lies there, by the accelerator's address. */
void far_show(const void *real, size_t bytes);
/** The views and the accelerator are there from now on. */
void far_prepare(void);
ring_status far_owns(const accelerator *a, const void *at, size_t bytes,
                     accelerator_allocation *out);

/* ---- far.c ---- */
extern accelerator far_here;
extern const accelerator far_elsewhere;
/** Its thread; once. */
void far_start(void);

/* ---- far_stream.c ---- */
typedef struct far_stop {
    accelerator_stop base;
    ticket reached;
    bool resumed;
} far_stop;
void far_stop_init(far_stop *stop);
void far_stop_wait(far_stop *stop);

typedef enum far_job_kind {
    FAR_JOB_WRITE,
    FAR_JOB_READ,
    FAR_JOB_DELAY,
    FAR_JOB_HOLD,
    FAR_JOB_STOP
} far_job_kind;

typedef struct far_job {
    struct far_job *next;
    far_job_kind kind;
    void *memory, *to;
    const void *from;
    size_t bytes;
    double seconds;
    far_stop *stop;
} far_job;

/** Appends a job to the stream. @return false if there is no memory. */
bool far_stream_add(far_stream *s, const far_job *job);
ring_status far_owns_stream(const accelerator *a, void *stream, bool *yes);
ring_status far_stop_stream(const accelerator *a, void *stream, accelerator_stop **out);
void far_resume(accelerator_stop *stop);
ring_status far_captures(const accelerator *a, void *stream, bool *captured);

#endif
