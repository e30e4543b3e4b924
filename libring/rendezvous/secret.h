/* SPDX-License-Identifier: Apache-2.0
 *
 * secret: reads the secret that proves membership when ranks join without a unique id. All ranks of
 * a job have the same secret in a file or a descriptor.
 */
#ifndef RING_RENDEZVOUS_SECRET_H
#define RING_RENDEZVOUS_SECRET_H

#include "credential.h"

/** Gets the hash of the content of RING_SECRET_FD or RING_SECRET_FILE; *found is false if neither
 * is set. */
ring_status secret_read(const settings *s, unsigned char hash[CREDENTIAL_KEY], bool *found);

#endif
