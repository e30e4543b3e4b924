/* SPDX-License-Identifier: Apache-2.0
 * slot_format: converts frames to slots, and checks whether a slot has arrived completely. Slots of
 * a direction are numbered from 0. */
#ifndef RING_SLOT_FORMAT_H
#define RING_SLOT_FORMAT_H

#include "verbs.h"

/** @return slot @p number with the header @p frame, complete with stamp and checksum. */
verbs_slot verbs_slot_of(const transport_frame *frame, uint64_t number);
/** Copies slot @p number to @p out. @return false if part of it has not arrived yet. */
bool verbs_read_slot(const verbs_link *l, uint64_t number, verbs_slot *out);
/** @return the last word of slot @p number, which the receiver polls. */
const _Atomic uint32_t *verbs_stamp_word(const verbs_link *l, uint64_t number);
/** @return true if the stamp of slot @p number has arrived; the rest may still be missing. */
bool verbs_is_stamped(const verbs_link *l, uint64_t number);
/** @return true if the next frame, which has not been peeked, has arrived at least in part. */
bool verbs_has_frame(const verbs_link *l);
/** @return the number of slots that have arrived without a gap, consumed or not. */
uint64_t verbs_arrived(const verbs_link *l);

#endif
