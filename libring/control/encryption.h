/* SPDX-License-Identifier: Apache-2.0
 *
 * encryption: whether and how data that leaves the host is encrypted. Rank 0 chooses; a rank that
 * cannot do as it says, or that asked for encryption where rank 0 did not, ends the start.
 */
#ifndef RING_CONTROL_ENCRYPTION_H
#define RING_CONTROL_ENCRYPTION_H

#include "credential.h"

/** Checks what RING_ENCRYPT says on this rank; rank 0 replaces ENCRYPT_BEST.
 *  @return RING_ERR_CONFIG if it cannot be done: the key is public, or rank 0's processor lacks the
 *          instructions. */
ring_status encryption_choose(settings *s, const credential *c, int rank);
/** Takes rank 0's choice, an encryption that is not ENCRYPT_BEST. RING_ERR_CONFIG: this processor
 * cannot, or this rank asked for encryption in vain; then nothing is taken. */
ring_status encryption_follow(settings *s, encryption rank_0);

#endif
