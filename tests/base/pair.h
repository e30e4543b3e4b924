/* SPDX-License-Identifier: Apache-2.0
 *
 * Both ends of a link between ranks 0 and 1 in this process, or one end whose peer the test
 * plays by hand over the socket. */
#ifndef TEST_BASE_PAIR_H
#define TEST_BASE_PAIR_H

#include "table.h"

#include <pthread.h>

/** One open(), and until the other end has answered, on a thread of its own. */
typedef struct opening {
    const transport *transport;
    transport_peer peer;
    double deadline;
    pthread_t thread;
    ring_status status;
    char text[512];
    transport_link *link;
} opening;

/** Starts to open rank @p rank's end over @p fd. */
void opening_start(opening *o, const transport *t, int rank, int fd, double seconds);
/** Waits for it. The link is set if RING_OK, else the text. */
ring_status opening_end(opening *o);

/** Opens both ends; ends[rank]. Ends the test if it fails. */
void pair_open(const transport *t, transport_link *ends[2]);
/** NULL ends are closed already. */
void pair_close(transport_link *ends[2]);

/** Two connected sockets. */
void pair_sockets(int fds[2]);
/** @return descriptors open in this process. */
size_t pair_count_fds(void);

/** The next frame that arrives within seconds. */
const transport_frame *pair_receive(transport_link *l, const void **payload);
/** Waits for the link to break, and gives the status that it broke with. */
ring_status pair_await_broken(transport_link *l);

#endif
