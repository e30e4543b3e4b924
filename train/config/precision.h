/* SPDX-License-Identifier: Apache-2.0
 *
 * precision: decides in which types parameters and gradients are kept and sent, and how the loss is
 * scaled, from DeepSpeed's sections fp16, bf16, amp and data_types, and communication_data_type.
 * Arithmetic is in float32 for all types.
 */
#ifndef TRAIN_PRECISION_H
#define TRAIN_PRECISION_H

#include <ring/ring.h>
#include <stdbool.h>

/* The settings of the file. */
typedef struct precision_settings {
    bool fp16, bf16, amp;
    char amp_level[4]; /* "O0" to "O3" */
    double loss_scale; /* fixed; 0: it is adapted during training */
    long scale_power;  /* an adapted scale starts at 2^this */
    long scale_window, hysteresis, min_scale;
    bool consecutive_hysteresis;
    bool check_overflow;           /* bf16: skip an update whose gradients are not finite */
    char wire[8], accumulation[8]; /* "fp32", "fp16", "bf16"; "": the parameters' type */
} precision_settings;

typedef struct precision_config {
    precision_settings set;
    /* Derived by precision_resolve(). */
    ring_dtype params; /* in which parameters are kept and gathered */
    ring_dtype grads;  /* in which gradients are kept, and summed over micro-batches */
    ring_dtype wire;   /* in which gradients are sent */
    bool masters;      /* the optimiser has a copy of the parameters in float32 */
    bool skips;        /* skip an update whose gradients are not finite */
    bool scales;       /* scale the loss as set; else by 1 */
    bool old_window;   /* adapt the scale as DeepSpeed 0.13 does */
} precision_config;

/** A conflict of settings, or a line for the user; NULL if there is none. */
typedef struct precision_verdict {
    const char *fault, *key; /* @p fault is reported at the place of @p key */
    const char *note;
} precision_verdict;

/** Fills in the members that follow from the settings. @param zero_stage  of ZeRO. */
precision_verdict precision_resolve(precision_config *precision, long zero_stage);

/** @return "fp32", "fp16" or "bf16". */
const char *precision_name(ring_dtype type);

/** @return bytes of an element. */
size_t precision_size(ring_dtype type);

#endif
