/* SPDX-License-Identifier: Apache-2.0
 *
 * precision: in which types parameters and gradients are kept and sent, and how the loss is scaled
 * meanwhile: DeepSpeed's sections fp16, bf16, amp and data_types, and communication_data_type.
 * Arithmetic is in float32 for all types.
 */
#ifndef TRAIN_PRECISION_H
#define TRAIN_PRECISION_H

#include <ring/ring.h>
#include <stdbool.h>

/* As the file says. */
typedef struct precision_settings {
    bool fp16, bf16, amp;
    char amp_level[4]; /* "O0" to "O3" */
    double loss_scale; /* fixed; 0: it moves */
    long scale_power;  /* the moving scale starts at 2^this */
    long scale_window, hysteresis, min_scale;
    bool consecutive_hysteresis;
    bool check_overflow;           /* bf16: an update whose gradients are not finite is left out */
    char wire[8], accumulation[8]; /* "fp32", "fp16", "bf16"; "": as the parameters */
} precision_settings;

typedef struct precision_config {
    precision_settings set;
    /* Derived by precision_resolve(). */
    ring_dtype params; /* kept and gathered */
    ring_dtype grads;  /* kept, and summed over micro-batches */
    ring_dtype wire;   /* of gradients */
    bool masters;      /* the optimiser has parameters of its own, in float32 */
    bool skips;        /* an update whose gradients are not finite is left out */
    bool scales;       /* the loss, as set; else by 1 */
    bool old_window;   /* of the moving scale: as in DeepSpeed 0.13 */
} precision_config;

/** A conflict of settings, or a line for the user; NULL where there is none. */
typedef struct precision_verdict {
    const char *fault, *key; /* @p fault is reported at the place of @p key */
    const char *note;
} precision_verdict;

/** Fills in what follows from the settings. @param zero_stage  of ZeRO. */
precision_verdict precision_resolve(precision_config *precision, long zero_stage);

/** @return "fp32", "fp16" or "bf16". */
const char *precision_name(ring_dtype type);

/** @return bytes of an element. */
size_t precision_size(ring_dtype type);

#endif
