/* SPDX-License-Identifier: Apache-2.0
 *
 * setup: from the options to a job: the ranks of each host, and the address where they meet.
 */
#ifndef LAUNCH_SETUP_H
#define LAUNCH_SETUP_H

#include "job.h"
#include "run_options.h"

typedef struct setup {
    layout places;
    job j;
    size_t first, end;  /* places.shares[first … end) are started by this ringrun */
    const share *here;  /* the ranks of this host, NULL: none */
    bool ask_address;   /* rank 0's host must report its address */
    double patience;    /* seconds that other hosts have to answer                */
    char ringrun[4096]; /* path of ringrun on other hosts                        */
} setup;

/** @param[out] out  setup_free() it, also after a failure. */
ring_status setup_make(const options *o, setup *out);
void setup_free(setup *s);

/** Prints environment and command of every rank, without the secret; starts none. */
void setup_print(const setup *s, const options *o);

/** @return true if @p host is the machine we are on. */
bool host_address_is_here(const char *host);
/** A port of 127.0.0.1 that is free now. */
ring_status host_address_free_port(int *port);
/** The address at which another host reaches this one: the one that faces @p host, else the first
 *  that is not the loopback. @return false if there is none. */
bool host_address_towards(const char *host, char *out, size_t size);
/** The address of this host that is not the loopback. @return false if there is none. */
bool host_address_public(char *out, size_t size);
/** The numeric address of @p host as seen from here. @return false if it has none but
 *  loopback ones. */
bool host_address_resolve(const char *host, char *out, size_t size);

#endif
