/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a cipher, and checks that this processor supports it. AES-256-GCM needs instructions that
 * not all processors have; ChaCha20 runs on all processors.
 */
#include "encryption.h"

#include <sodium.h>

static ring_status check_processor(encryption wanted)
{
    if (wanted != ENCRYPT_AES256GCM || crypto_aead_aes256gcm_is_available())
        return RING_OK;
    return fail(RING_ERR_CONFIG,
                "RING_ENCRYPT: rank 0 chose AES-256-GCM, but this processor has no "
                "instructions for it; set RING_ENCRYPT=chacha20 on rank 0");
}

ring_status encryption_choose(settings *s, const credential *c, int rank)
{
    if (s->encrypt == ENCRYPT_NO)
        return RING_OK;
    if (c->is_public)
        return fail(RING_ERR_CONFIG,
                    "RING_ENCRYPT is set, but without a secret the key is public; start "
                    "with ringrun, or set RING_SECRET_FILE");
    if (s->encrypt == ENCRYPT_BEST && rank == 0)
        s->encrypt = crypto_aead_aes256gcm_is_available() ? ENCRYPT_AES256GCM : ENCRYPT_CHACHA20;
    return rank == 0 ? check_processor(s->encrypt) : RING_OK;
}

ring_status encryption_follow(settings *s, encryption rank_0)
{
    if (rank_0 == ENCRYPT_NO && s->encrypt != ENCRYPT_NO)
        return fail(RING_ERR_CONFIG, "RING_ENCRYPT is set here, but not on rank 0, whose setting "
                                     "applies to all ranks; set it to the same value on all ranks");
    RING_TRY(check_processor(rank_0));
    if (rank_0 != s->encrypt && s->encrypt != ENCRYPT_NO && s->encrypt != ENCRYPT_BEST)
        log_warn(
            "RING_ENCRYPT chooses another cipher on this rank than on rank 0, whose choice applies "
            "to all ranks");
    s->encrypt = rank_0;
    return RING_OK;
}
