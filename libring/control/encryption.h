/* SPDX-License-Identifier: Apache-2.0
 *
 * encryption: decides whether and how data that leaves the host is encrypted. Rank 0 chooses the
 * cipher for all ranks. The start fails if a rank cannot use the cipher, or if RING_ENCRYPT is set
 * on a rank but not on rank 0.
 */
#ifndef RING_CONTROL_ENCRYPTION_H
#define RING_CONTROL_ENCRYPTION_H

#include "credential.h"

/** Checks this rank's setting of RING_ENCRYPT; on rank 0 it replaces ENCRYPT_BEST by a cipher.
 *  @return RING_ERR_CONFIG if data cannot be encrypted: the key is public, or rank 0's processor
 *          lacks the instructions. */
ring_status encryption_choose(settings *s, const credential *c, int rank);
/** Adopts rank 0's choice at another rank.
 *  @param rank_0  a cipher or ENCRYPT_NO, never ENCRYPT_BEST.
 *  @return RING_ERR_CONFIG, with @p s unchanged, if this processor lacks the instructions for the
 *          cipher, or if RING_ENCRYPT is set here and not on rank 0. */
ring_status encryption_follow(settings *s, encryption rank_0);

#endif
