/* SPDX-License-Identifier: Apache-2.0
 * secret: the proof of membership where no unique id is passed on. */
#ifndef RING_RENDEZVOUS_SECRET_H
#define RING_RENDEZVOUS_SECRET_H

#include "credential.h"

/** The hash of RING_SECRET_FD's or RING_SECRET_FILE's content; *found is false if neither
 *  is set. */
ring_status secret_read(const settings *s, unsigned char hash[CREDENTIAL_KEY], bool *found);

#endif
