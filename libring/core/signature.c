/* SPDX-License-Identifier: Apache-2.0
 * Packs the signature of a call into 64 bits and describes it for messages. A value that is too
 * large for its field is packed as the field's largest value. */
#include "signature.h"

typedef struct field {
    unsigned shift, bits;
} field;

static const field collective_field = {0, 5}, dtype_field = {5, 5}, op_field = {10, 4},
                   algorithm_field = {14, 3}, device_field = {17, 1}, chunks_field = {18, 12},
                   root_field = {30, 14}, count_field = {44, 20};

_Static_assert(PLAN_COLLECTIVE_COUNT <= 1 << 5 && RING_DTYPE_COUNT <= 1 << 5 &&
                   RING_OP_COUNT <= 1 << 4,
               "the fields hold all values");

static uint64_t most(field f)
{
    return (UINT64_C(1) << f.bits) - 1;
}

static uint64_t put(field f, uint64_t value)
{
    return (value < most(f) ? value : most(f)) << f.shift;
}

static uint64_t get(field f, uint64_t packed)
{
    return packed >> f.shift & most(f);
}

/* The root of a pairwise call differs at its two ends, so both pack 0. */
uint64_t signature_pack(const call_signature *call, const call_way *way)
{
    const bool pairwise = plan_facts_of(call->collective)->pairwise;
    return put(collective_field, pairwise ? PLAN_SEND : call->collective) |
           put(dtype_field, (uint64_t)call->dtype) | put(op_field, (uint64_t)call->op) |
           put(algorithm_field, (uint64_t)way->algorithm) | put(device_field, call->on_device) |
           put(chunks_field, (uint64_t)way->chunks) |
           put(root_field, pairwise ? 0 : (uint64_t)call->root) | put(count_field, call->count);
}

/* The field of the count is free for the mark, because these v-forms pack no count. The way of a
 * call depends on the kind of memory. */
uint64_t signature_of_idle(uint64_t packed)
{
    return packed | put(count_field, most(count_field)) | put(device_field, 1) |
           put(algorithm_field, most(algorithm_field)) | put(chunks_field, most(chunks_field));
}

static bool is_idle(uint64_t packed)
{
    const plan_facts *facts = plan_facts_of((plan_collective)get(collective_field, packed));
    return facts != NULL && facts->uneven && facts->personalized && get(count_field, packed) > 0;
}

bool signature_same(uint64_t a, uint64_t b)
{
    return a == b || ((is_idle(a) || is_idle(b)) && signature_of_idle(a) == signature_of_idle(b));
}

call_signature signature_unpack(uint64_t packed)
{
    return (call_signature){.collective = (plan_collective)get(collective_field, packed),
                            .dtype = (ring_dtype)get(dtype_field, packed),
                            .op = (ring_op)get(op_field, packed),
                            .root = (int32_t)get(root_field, packed),
                            .count = get(count_field, packed),
                            .on_device = get(device_field, packed) != 0};
}

call_signature signature_of_frame(const transport_frame *frame)
{
    call_signature call = signature_unpack(frame->signature);
    const plan_facts *facts = plan_facts_of(call.collective);
    /* In a v-form the frame's count is the count of its message, not of the call. */
    const bool uneven = facts != NULL && facts->uneven;
    if ((frame->flags & FRAME_LONG) && !uneven) {
        call.count = frame->ext.count;
        call.root = frame->ext.root;
    }
    return call;
}

size_t signature_bytes(const call_signature *call, int ranks)
{
    return call->count * (size_t)plan_blocks(call->collective, ranks) *
           ring_dtype_size(call->dtype);
}

void signature_describe(const call_signature *call, uint64_t seq, char *out, size_t size)
{
    const plan_facts *facts = plan_facts_of(call->collective);
    text_format(out, size, "%s #%llu", plan_collective_name(call->collective),
                (unsigned long long)seq);
    if (facts == NULL)
        return;
    if (call->collective == PLAN_BARRIER) {
        text_append(out, size, "%s", call->on_device ? " (run by GPUs)" : "");
        return;
    }
    text_append(out, size, " (");
    if (!facts->uneven)
        text_append(out, size, "count %zu, ", call->count);
    else if (!facts->personalized)
        text_append(out, size, "longest count %zu%s, checksum of counts %04x, ", call->count,
                    call->count == most(count_field) ? " or more" : "", (unsigned)call->root);
    text_append(out, size, "%s", ring_dtype_name(call->dtype));
    if (facts->reduces)
        text_append(out, size, ", %s", ring_op_name(call->op));
    if (facts->rooted)
        text_append(out, size, ", root %d", call->root);
    if (call->tagged && call->tag == RING_ANY_TAG)
        text_append(out, size, ", any tag");
    else if (call->tagged)
        text_append(out, size, ", tag %d", call->tag);
    if (call->on_device)
        text_append(out, size, ", run by GPUs");
    text_append(out, size, ")");
}
