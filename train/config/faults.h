/* SPDX-License-Identifier: Apache-2.0
 *
 * faults: all that is wrong with a file, so that one run tells it. A reader that finds a fault
 * calls train_fail() as ever, and notes it here if reading can go on.
 */
#ifndef TRAIN_FAULTS_H
#define TRAIN_FAULTS_H

#include <ring/ring.h>

enum { FAULTS_KEPT = 12, FAULT_BYTES = 320 };

typedef struct fault {
    size_t at; /* byte of the source, by which they are sorted */
    char text[FAULT_BYTES];
} fault;

typedef struct faults {
    fault list[FAULTS_KEPT];
    size_t count;       /* of all; those kept are the first */
    ring_status status; /* of the first; RING_OK: there is none */
} faults;

/** Keeps this thread's error text. @param status  what train_fail() returned; RING_OK: nothing. */
void faults_note(faults *f, size_t at, ring_status status);

/** @return RING_OK, or the status of the first with all texts, a line each, and their number if
 *  there are several. @param name  of the file. */
ring_status faults_tell(faults *f, const char *name);

#endif
