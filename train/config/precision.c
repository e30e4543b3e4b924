/* SPDX-License-Identifier: Apache-2.0
 * Computes the types of parameters, gradients and messages from DeepSpeed's sections on precision.
 */
#include "precision.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    ring_dtype type;
} types[] = {{"fp32", RING_FLOAT32}, {"fp16", RING_FLOAT16}, {"bf16", RING_BFLOAT16}};

enum { TYPES = sizeof types / sizeof types[0] };

const char *precision_name(ring_dtype type)
{
    int i = 0;
    while (i + 1 < TYPES && types[i].type != type)
        i++;
    return types[i].name;
}

size_t precision_size(ring_dtype type)
{
    return type == RING_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
}

static ring_dtype type_of(const char *name, ring_dtype otherwise)
{
    for (int i = 0; i < TYPES; i++) {
        if (strcasecmp(types[i].name, name) == 0)
            return types[i].type;
    }
    return otherwise;
}

static precision_verdict refuse(const char *key, const char *fault)
{
    return (precision_verdict){.key = key, .fault = fault};
}

/* Applies the section amp. DeepSpeed passes it to NVIDIA's apex, which patches functions of
 * PyTorch. Here its level decides only the type of the parameters and whether there are float32
 * masters. */
static precision_verdict resolve_amp(precision_config *precision, long zero_stage)
{
    const precision_settings *set = &precision->set;
    const char level = set->amp_level[1];
    precision_verdict verdict = {.note = "amp.opt_level O0: training is in float32"};
    if (zero_stage > 0)
        return refuse("amp.enabled", "as in DeepSpeed, amp cannot be combined with "
                                     "zero_optimization; use fp16, which is the same as amp's O2");
    if (set->fp16 || set->bf16)
        return refuse("amp.enabled", "as in DeepSpeed, amp cannot be combined with fp16 or bf16; "
                                     "keep one of them");
    if (level == '0')
        return verdict;
    precision->params = RING_FLOAT16;
    precision->masters = level != '3';
    precision->skips = precision->scales = level != '3';
    verdict.note = level == '3'
                       ? "amp.opt_level O3: parameters are in float16 without float32 masters, and "
                         "the loss is not scaled, so small updates are lost; O2 keeps them"
                       : "amp: as with fp16, parameters and gradients are in float16 with float32 "
                         "masters and fp16's loss scaler; O1 and O2 are the same";
    return verdict;
}

/* Decides the type of the parameters, and whether there are masters and a loss scale. */
static precision_verdict resolve_model(precision_config *precision, long zero_stage)
{
    const precision_settings *set = &precision->set;
    if (set->amp)
        return resolve_amp(precision, zero_stage);
    if (set->fp16 && set->bf16)
        return refuse("bf16.enabled", "bfloat16 and fp16 modes cannot be simultaneously enabled");
    if (set->fp16)
        precision->params = RING_FLOAT16;
    if (set->bf16)
        precision->params = RING_BFLOAT16;
    precision->masters = set->fp16 || set->bf16;
    precision->scales = set->fp16;
    precision->skips = set->fp16 || (set->bf16 && set->check_overflow);
    return (precision_verdict){0};
}

precision_verdict precision_resolve(precision_config *precision, long zero_stage)
{
    const precision_settings *set = &precision->set;
    precision->params = RING_FLOAT32;
    const precision_verdict verdict = resolve_model(precision, zero_stage);
    precision->grads = type_of(set->accumulation, precision->params);
    precision->wire = type_of(set->wire, precision->params);
    if (verdict.fault == NULL && precision->grads != precision->params &&
        precision->grads != RING_FLOAT32)
        return refuse("data_types.grad_accum_dtype",
                      "data_types.grad_accum_dtype must be fp32 or the type of the parameters");
    return verdict;
}
