/* SPDX-License-Identifier: Apache-2.0
 *
 * faults: collects all errors in a file, so that one run reports them all. A reader that finds a
 * fault calls train_fail() as usual, and notes it here if it can continue.
 */
#ifndef TRAIN_FAULTS_H
#define TRAIN_FAULTS_H

#include <ring/ring.h>

enum { FAULTS_KEPT = 12, FAULT_BYTES = 320 };

typedef struct fault {
    size_t at; /* offset in the source; faults are sorted by it */
    char text[FAULT_BYTES];
} fault;

typedef struct faults {
    fault list[FAULTS_KEPT];
    size_t count;       /* number of all faults, of which only the first ones are kept */
    ring_status status; /* of the first fault; RING_OK: there are no faults */
} faults;

/** Adds this thread's error text to the list, unless @p status is RING_OK.
 *  @param at  offset in the source; SIZE_MAX: no particular place. @param status  from train_fail()
 */
void faults_note(faults *f, size_t at, ring_status status);

/** Reports the faults: sets this thread's error text to one line for each fault that was kept, and
 * if there are several, a line with their number.
 *  @param name  of the file. @return RING_OK if there are no faults, or else the status of the
 * first fault. */
ring_status faults_tell(faults *f, const char *name);

#endif
