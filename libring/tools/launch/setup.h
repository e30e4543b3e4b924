/* SPDX-License-Identifier: Apache-2.0
 *
 * setup: makes a job from the options: the ranks of each host, and the address where they meet.
 */
#ifndef LAUNCH_SETUP_H
#define LAUNCH_SETUP_H

#include "job.h"
#include "run_options.h"

typedef struct setup {
    layout places;
    job j;
    bool alone;          /* only the ranks of this host are started by this ringrun */
    const share *here;   /* the ranks of this host, NULL: none */
    bool ask_address;    /* rank 0's host must report its address */
    double patience;     /* seconds that other hosts have to answer                */
    const char *ringrun; /* path of ringrun on other hosts                        */
    char own_path[4096];
} setup;

/** @param[out] out  setup_free() it, also after a failure. */
ring_status setup_make(const options *o, setup *out);
void setup_free(setup *s);

#endif
