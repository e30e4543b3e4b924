/* SPDX-License-Identifier: Apache-2.0
 *
 * setup: makes a job from the options: the ranks of each host, and the values that all ranks share.
 */
#ifndef LAUNCH_SETUP_H
#define LAUNCH_SETUP_H

#include "job.h"
#include "run_options.h"

typedef struct setup {
    layout places;
    job j;
    bool alone;          /* --node-rank: this ringrun starts only the ranks of this host */
    const share *here;   /* the ranks of this host; NULL: none */
    bool ask_address;    /* the host of rank 0 must report its address */
    double patience;     /* time in seconds for other hosts to answer             */
    const char *ringrun; /* path of ringrun on other hosts                        */
    char own_path[4096];
} setup;

/** Makes the job. @param[out] out  to be freed by setup_free(), also after a failure. */
ring_status setup_make(const options *o, setup *out);
void setup_free(setup *s);

#endif
