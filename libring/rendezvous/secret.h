/* SPDX-License-Identifier: Apache-2.0
 *
 * secret: reads the secret from which the key of a job is derived if its ranks join without a
 * unique id. All ranks of a job must have the same secret, in a file or on a descriptor.
 */
#ifndef RING_RENDEZVOUS_SECRET_H
#define RING_RENDEZVOUS_SECRET_H

#include "credential.h"

/** Hashes the content of RING_SECRET_FD or RING_SECRET_FILE.
 *  @param[out] found  false if neither is set; @p hash is unchanged then.
 *  @return RING_OK, RING_ERR_CONFIG or RING_ERR_SYSTEM. */
ring_status secret_read(const settings *s, unsigned char hash[CREDENTIAL_KEY], bool *found);

#endif
