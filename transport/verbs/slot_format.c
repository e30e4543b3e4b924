/* SPDX-License-Identifier: Apache-2.0
 * Converts frames to slots, and checks with their checksums whether slots have arrived
 * completely. */
#include "slot_format.h"

static uint32_t check_of(const verbs_slot *slot)
{
    uint64_t word[sizeof *slot / sizeof(uint64_t)], x = 0x9e3779b97f4a7c15u;
    memcpy(word, slot, sizeof word);
    word[7] >>= 32; /* leaves the stamp, and removes the checksum itself */
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        x = (x ^ word[i]) * 0xff51afd7ed558ccdu, x ^= x >> 29;
    return (uint32_t)(x >> 16);
}

verbs_slot verbs_slot_of(const transport_frame *frame, uint64_t number)
{
    verbs_slot slot = {.signature = frame->signature,
                       .message = (uint32_t)frame->message,
                       .flags = frame->flags,
                       .length = frame->length,
                       .call = frame->call,
                       .stamp = (uint32_t)number + 1};
    memcpy(slot.data, frame->data, sizeof slot.data);
    slot.check = check_of(&slot);
    return slot;
}

const _Atomic uint32_t *verbs_stamp_word(const verbs_link *l, uint64_t number)
{
    return (const _Atomic uint32_t *)&l->in->slot[number % VERBS_SLOTS].stamp;
}

bool verbs_is_stamped(const verbs_link *l, uint64_t number)
{
    return atomic_load_explicit(verbs_stamp_word(l, number), memory_order_acquire) ==
           (uint32_t)number + 1;
}

/* Loads the slot's words atomically, because the adapter may still be writing them. */
bool verbs_read_slot(const verbs_link *l, uint64_t number, verbs_slot *out)
{
    uint64_t word[sizeof *out / sizeof(uint64_t)];
    const _Atomic uint64_t *from =
        (const _Atomic uint64_t *)(const void *)&l->in->slot[number % VERBS_SLOTS];
    if (!verbs_is_stamped(l, number))
        return false;
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        word[i] = atomic_load_explicit(&from[i], memory_order_acquire);
    memcpy(out, word, sizeof word);
    return out->check == check_of(out);
}

uint64_t verbs_arrived(const verbs_link *l)
{
    verbs_slot slot;
    uint64_t n = l->recv.words[WORD_TAKEN];
    while (n - l->recv.words[WORD_TAKEN] < VERBS_SLOTS && verbs_read_slot(l, n, &slot))
        n++;
    return n;
}

bool verbs_has_frame(const verbs_link *l)
{
    return !l->recv.peeked && verbs_is_stamped(l, l->recv.words[WORD_TAKEN]);
}
