/* SPDX-License-Identifier: Apache-2.0
 * Falsifies fields of frame headers as a faulty peer might, for the fault "lie". Three random
 * numbers choose the field, the kind of change and the new value. */
#include "fault.h"

enum { DICE_FIELD = 4, DICE_VALUE, DICE_CHANGE };

/* @return a wrong value, close to the true one or far from it. */
static uint64_t wrong_value(uint64_t truth, uint64_t change, uint64_t value)
{
    const uint64_t others[] = {0,     truth + 1, truth - 1, truth ^ UINT64_C(1) << value % 64,
                               value, UINT64_MAX};
    return others[change % (sizeof others / sizeof *others)];
}

static void falsify_ext(transport_frame *frame, uint64_t field, uint64_t change, uint64_t value)
{
    uint64_t *const wide[] = {&frame->ext.count, &frame->ext.src_ref, &frame->ext.dst_ref,
                              &frame->ext.bytes};
    /* In a frame that carries its payload, the link itself checks `bytes` and `src_ref`, so these
     * two stay as they are. */
    const bool refers = frame->flags != FRAME_LONG;
    if (field % 6 == 4)
        frame->ext.segment = (uint32_t)wrong_value(frame->ext.segment, change, value);
    else if (field % 6 == 5)
        frame->ext.root = (int32_t)wrong_value((uint64_t)frame->ext.root, change, value);
    else if (refers || field % 6 == 0 || field % 6 == 2)
        *wide[field % 6] = wrong_value(*wide[field % 6], change, value);
}

void fault_lie(const fault_link *l, transport_frame *frame)
{
    const uint64_t number = l->head.frames_sent, field = fault_random(l, DICE_FIELD, number);
    const uint64_t value = fault_random(l, DICE_VALUE, number);
    const uint64_t change = fault_random(l, DICE_CHANGE, number);
    switch (field % 5) {
    case 0:
        frame->call = (uint16_t)wrong_value(frame->call, change, value);
        break;
    case 1:
        frame->signature = wrong_value(frame->signature, change, value);
        break;
    case 2:
        frame->message = wrong_value(frame->message, change, value);
        break;
    default:
        if (frame->flags & FRAME_LONG)
            falsify_ext(frame, field / 5, change, value);
        else if (field / 5 % 2 == 0)
            frame->length = (uint8_t)(value % (TRANSPORT_INLINE + 1));
        else
            frame->data[value % TRANSPORT_INLINE] ^= (unsigned char)(1 + (value >> 8) % 255);
    }
}
