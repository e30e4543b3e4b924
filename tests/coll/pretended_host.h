/* SPDX-License-Identifier: Apache-2.0
 *
 * Several hosts on one machine. The library tells hosts by their kernel's boot and their network
 * namespace; a program that is linked with pretended_host.c shows each thread a namespace of the
 * host it has set. All else, addresses too, stays that of the machine. */
#ifndef RING_TEST_PRETENDED_HOST_H
#define RING_TEST_PRETENDED_HOST_H

/** Sets the host of the calling thread and of its children; it is 0 before. */
void pretended_host_set(int host);

#endif
