/* SPDX-License-Identifier: Apache-2.0
 *
 * pixel_norm: normalizes images as torchvision's ToTensor and Normalize do: (byte / 255 - mean) /
 * std in float32, with a mean and a standard deviation for each channel. The results are equal to
 * torchvision's bit for bit.
 */
#ifndef TRAIN_PIXEL_NORM_H
#define TRAIN_PIXEL_NORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NORM_CHANNELS_MAX = 4, NORM_TEXT_MAX = 256, BYTE_VALUES = 256 };

typedef struct pixel_norm {
    size_t channels;          /* 1: the same for all channels; 0: no normalization */
    char text[NORM_TEXT_MAX]; /* in canonical form, such as "0.1307/0.3081" */
    float values[NORM_CHANNELS_MAX][BYTE_VALUES]; /* the number for each byte */
} pixel_norm;

/** Parses "MEAN,…/STD,…", with as many MEANs as STDs, and each STD above 0.
 *  @return false if the text is not of this form. */
bool pixel_norm_parse(const char *text, pixel_norm *norm);

/** Normalizes one image. @param bytes   [channels, plane]
 *  @param[out] numbers  [channels, plane] */
void pixel_norm_apply(const pixel_norm *norm, const uint8_t *bytes, size_t channels, size_t plane,
                      float *numbers);

#endif
