/* SPDX-License-Identifier: Apache-2.0
 *
 * encryption: decides whether and how data that leaves the host is encrypted. Rank 0 chooses for
 * all. A rank that cannot use this cipher, or that asked for encryption when rank 0 did not, ends
 * the start.
 */
#ifndef RING_CONTROL_ENCRYPTION_H
#define RING_CONTROL_ENCRYPTION_H

#include "credential.h"

/** Checks the RING_ENCRYPT setting of this rank; on rank 0 it replaces ENCRYPT_BEST by a cipher.
 *  @return RING_ERR_CONFIG if data cannot be encrypted: the key is public, or rank 0's processor
 *          lacks the instructions. */
ring_status encryption_choose(settings *s, const credential *c, int rank);
/** Adopts rank 0's choice, which is not ENCRYPT_BEST.
 *  @return RING_ERR_CONFIG, with @p s unchanged, if this processor lacks the instructions, or this
 *          rank asked for encryption and rank 0 did not. */
ring_status encryption_follow(settings *s, encryption rank_0);

#endif
