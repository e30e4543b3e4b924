/* SPDX-License-Identifier: Apache-2.0
 *
 * precision: decides the types in which parameters and gradients are kept and sent, and how the
 * loss is scaled. The settings are DeepSpeed's sections fp16, bf16, amp and data_types, and the key
 * communication_data_type. Arithmetic is in float32 whatever the types.
 */
#ifndef TRAIN_PRECISION_H
#define TRAIN_PRECISION_H

#include <ring/ring.h>
#include <stdbool.h>

/* The settings as they are in the file. */
typedef struct precision_settings {
    bool fp16, bf16, amp;
    char amp_level[4]; /* "O0" to "O3" */
    double loss_scale; /* a fixed scale; 0: adapt the scale during training */
    long scale_power;  /* an adapted scale starts at 2^scale_power */
    long scale_window, hysteresis, min_scale;
    bool consecutive_hysteresis;
    bool check_overflow;           /* bf16: skip an update whose gradients are not finite */
    char wire[8], accumulation[8]; /* "fp32", "fp16", "bf16"; "": the parameters' type */
} precision_settings;

typedef struct precision_config {
    precision_settings set;
    /* Derived by precision_resolve(). */
    ring_dtype params; /* type in which parameters are kept and gathered */
    ring_dtype grads;  /* type in which gradients are kept and summed over micro-batches */
    ring_dtype wire;   /* type in which gradients are sent */
    bool masters;      /* the optimizer has a float32 copy of the parameters */
    bool skips;        /* skip an update whose gradients are not finite */
    bool scales;       /* scale the loss by the settings; false: by 1 */
    bool old_window;   /* adapt the scale as DeepSpeed 0.13 does */
} precision_config;

/** The result of the rules: a conflict of settings, a note for the user, or neither. */
typedef struct precision_verdict {
    const char *fault, *key; /* error text, and the key whose place it is about; or NULL */
    const char *note;        /* or NULL */
} precision_verdict;

/** Fills in the derived members. @param zero_stage  stage of ZeRO, with which amp is refused. */
precision_verdict precision_resolve(precision_config *precision, long zero_stage);

/** @return "fp32", "fp16" or "bf16". */
const char *precision_name(ring_dtype type);

/** @return the size of an element in bytes. */
size_t precision_size(ring_dtype type);

#endif
