/* SPDX-License-Identifier: Apache-2.0
 * Finds gradients that are not finite: each rank checks the gradients that it sends and the reduced
 * ones that it owns, and all ranks agree on the first one that is not finite. */
#include "overflow.h"

#include <stdio.h>

#include "agree.h"
#include "errors.h"
#include "numbers.h"

/* The number of an element over all ranks is rank * SPAN + its offset in the network. */
#define SPAN (UINT64_C(1) << 44)
#define NOWHERE UINT64_MAX

#define AT_LEAST \
    "Current loss scale already at minimum - cannot decrease scale anymore (fp16.min_loss_scale " \
    "%.15g, update %ld): the gradient of %s is still not finite; lower the learning rate, or " \
    "use bf16"

overflow_watch overflow_start(const precision_config *precision)
{
    return (overflow_watch){.scaler = loss_scaler_start(precision),
                            .skips = precision->skips,
                            .first = NOWHERE};
}

/* ---- Finding ------------------------------------------------------------------------------- */

/* A number is infinite or NaN if all bits of its exponent are set. The loops do not stop at the
 * first such number, so that the compiler can vectorize them. */
static bool all_finite(const void *values, ring_dtype type, size_t count)
{
    unsigned bad = 0;
    if (type == RING_FLOAT32) {
        const uint32_t *at = values, exponent = 0x7f800000;
        for (size_t i = 0; i < count; i++)
            bad |= (at[i] & exponent) == exponent;
        return bad == 0;
    }
    const uint16_t *at = values, exponent = type == RING_FLOAT16 ? 0x7c00 : 0x7f80;
    for (size_t i = 0; i < count; i++)
        bad |= (at[i] & exponent) == exponent;
    return bad == 0;
}

/* @return the index of the first element that is not finite, or @p count. */
static size_t find(const void *values, ring_dtype type, size_t count)
{
    const unsigned char *at = values;
    size_t i = 0;
    if (all_finite(values, type, count))
        return count;
    while (all_finite(at + i * precision_size(type), type, 1))
        i++;
    return i;
}

/* Lowers *first to the first of @p values [count] that is not finite.
 * @param offset  of values[0] in LAYOUT_FULL */
static void look_at(uint64_t *first, const void *values, ring_dtype type, size_t count,
                    uint64_t offset)
{
    const size_t i = find(values, type, count);
    if (i < count && offset + i < *first)
        *first = offset + i;
}

void overflow_look(overflow_watch *watch, const zero_memory *memory, int bucket)
{
    const partition_bucket *at = &memory->partition->buckets[bucket];
    const zero_array *wire = zero_array_of(memory, ZERO_WIRE);
    if (watch->skips)
        look_at(&watch->first, zero_bucket(memory, wire, bucket), wire->type, at->used,
                at->at[LAYOUT_FULL]);
}

/* @return the offset in LAYOUT_FULL of the first reduced gradient of this rank that is not finite,
 * or NOWHERE. The rank has its own part of each bucket; in stage 0 of ZeRO it has all gradients. */
static uint64_t first_reduced(const zero_memory *memory)
{
    uint64_t first = NOWHERE;
    for (int b = 0; b < memory->partition->count; b++) {
        const partition_bucket *at = &memory->partition->buckets[b];
        const zero_array *grads = &memory->arrays[ZERO_GRADS];
        const size_t before = memory->zero_stage > 0 ? (size_t)memory->rank * at->part : 0;
        look_at(&first, zero_owned(memory, grads, b), grads->type, zero_owned_count(memory, b),
                at->at[LAYOUT_FULL] + before);
    }
    return first;
}

/* ---- Reporting ----------------------------------------------------------------------------- */

/* Where the first gradient that is not finite came from. */
typedef struct overflow_place {
    bool sent; /* a rank sent it; false: the gradients sent were finite, but their sum is not */
    int rank;  /* the rank that sent it */
    const train_tensor *tensor;
    size_t index; /* of the element in the tensor */
} overflow_place;

static bool is_in(const train_tensor *tensor, uint64_t element)
{
    return tensor->tie < 0 && element >= tensor->offset && element < tensor->offset + tensor->count;
}

/* @return the offset in the whole network of an element of this rank's stage. */
static uint64_t offset_in_whole(const overflow_tensors *tensors, uint64_t element)
{
    for (int t = 0; t < tensors->whole->count && element != NOWHERE; t++) {
        const int local = tensors->locals != NULL ? tensors->locals[t] : t;
        if (local >= 0 && is_in(&tensors->here->list[local], element))
            return tensors->whole->list[t].offset + element - tensors->here->list[local].offset;
    }
    return element;
}

/* Finds the lowest rank that has sent a gradient that is not finite, or else the first such
 * gradient of the sum, by taking the minimum over all ranks. */
static ring_status agree_on_place(const overflow_watch *watch, const zero_memory *memory,
                                  const overflow_tensors *tensors, ring_comm *comm,
                                  overflow_place *place)
{
    uint64_t first[2] = {offset_in_whole(tensors, watch->first),
                         offset_in_whole(tensors, first_reduced(memory))};
    if (first[0] != NOWHERE)
        first[0] += (uint64_t)ring_comm_rank(comm) * SPAN;
    RING_TRY(train_ring(comm, ring_all_reduce(first, first, 2, RING_UINT64, RING_MIN, comm, NULL)));
    place->sent = first[0] != NOWHERE;
    const uint64_t element = place->sent ? first[0] % SPAN : first[1];
    place->rank = (int)(first[0] / SPAN);
    int t = 0;
    while (t + 1 < tensors->whole->count && !is_in(&tensors->whole->list[t], element))
        t++;
    place->tensor = &tensors->whole->list[t];
    place->index = (size_t)element - place->tensor->offset;
    return RING_OK;
}

/* Writes the same line as DeepSpeed, since scripts search logs for it. */
static void write_deepspeed_line(char *text, const loss_scaler *before, const loss_scaler *after,
                                 scaler_verdict verdict)
{
    static const char start[] = "[deepspeed] OVERFLOW!";
    NUMBERS_AS_IN_C;
    if (verdict == SCALER_LOWER)
        snprintf(text, OVERFLOW_TEXT_MAX,
                 "%s Rank 0 Skipping step. Attempted loss scale: %.0f, reducing to %.0f", start,
                 before->scale, after->scale);
    else if (verdict == SCALER_WAIT)
        snprintf(text, OVERFLOW_TEXT_MAX,
                 "%s Rank 0 Skipping step. Attempted loss scale: %.0f, but hysteresis is %d. "
                 "Reducing hysteresis to %d",
                 start, before->scale, before->left, after->left);
    else
        snprintf(text, OVERFLOW_TEXT_MAX,
                 "%s Skipping step. Gradients are non-finite, weights were not updated.", start);
}

static void write_place(char *text, const overflow_place *place)
{
    int used = 0;
    if (place->sent)
        used = snprintf(text, OVERFLOW_TEXT_MAX, "rank %d", place->rank);
    else
        used = snprintf(text, OVERFLOW_TEXT_MAX, "the sum over ranks");
    snprintf(text + used, OVERFLOW_TEXT_MAX - (size_t)used, ", tensor %s from element %zu on",
             place->tensor->name, place->index);
}

static void write_own_line(const overflow_watch *watch, char *text, const char *where,
                           double before, long update)
{
    NUMBERS_AS_IN_C;
    int used = snprintf(text, OVERFLOW_TEXT_MAX, "OVERFLOW in update %ld: %s", update, where);
    if (watch->scaler.dynamic)
        used += snprintf(text + used, OVERFLOW_TEXT_MAX - (size_t)used, ", scale %.15g -> %.15g",
                         before, watch->scaler.scale);
    snprintf(text + used, OVERFLOW_TEXT_MAX - (size_t)used, ", skipped %ld of %ld", watch->skipped,
             update);
}

void overflow_forget(overflow_watch *watch)
{
    watch->first = NOWHERE;
}

void overflow_none(overflow_watch *watch)
{
    loss_scaler_update(&watch->scaler, false);
}

ring_status overflow_skip(overflow_watch *watch, const zero_memory *memory,
                          const overflow_tensors *tensors, ring_comm *comm, long update)
{
    const loss_scaler before = watch->scaler;
    const scaler_verdict verdict = loss_scaler_update(&watch->scaler, true);
    overflow_place place;
    char where[OVERFLOW_TEXT_MAX];
    RING_TRY(agree_on_place(watch, memory, tensors, comm, &place));
    watch->first = NOWHERE;
    if (verdict == SCALER_AT_LEAST)
        return agree(comm, train_fail(RING_ERR_USAGE, AT_LEAST, before.scale, update,
                                      place.tensor->name));
    watch->skipped++;
    write_deepspeed_line(watch->lines[0], &before, &watch->scaler, verdict);
    write_place(where, &place);
    write_own_line(watch, watch->lines[1], where, before.scale, update);
    return RING_OK;
}
