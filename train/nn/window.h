/* SPDX-License-Identifier: Apache-2.0
 *
 * window: computes the sizes of ops that move a square window over the channels of an image:
 * convolution and pooling.
 */
#ifndef TRAIN_WINDOW_H
#define TRAIN_WINDOW_H

#include "op.h"

/** Sizes of an op with input [channels, rows, columns] and output [outputs of the op, out_rows,
 *  out_columns]. */
typedef struct op_window {
    size_t channels, rows, columns;
    size_t out_rows, out_columns;
    size_t kernel, stride, padding; /* in both directions; the padding is on all sides */
} op_window;

/** Checks the settings of @p use against its input. @return RING_ERR_CONFIG if they do not fit. */
ring_status window_check(const op_use *use);

/** @return the sizes of a use that window_check() passed; out_rows = (rows + 2 padding - kernel)
 *  / stride + 1, rounded down. */
op_window window_of(const op_use *use);

/** Checks the settings of an op that pools each channel, and sets its output shape.
 *  @return as window_check(). */
ring_status window_shape_pool(op_use *use);

/** The part of a window that is inside the image: rows or columns first to end - 1. */
typedef struct window_span {
    size_t first, end;
} window_span;

/** @return the span of window number @p at on an axis of @p length elements. */
static inline window_span window_at(const op_window *window, size_t at, size_t length)
{
    const size_t begin = at * window->stride, end = begin + window->kernel - window->padding;
    return (window_span){begin > window->padding ? begin - window->padding : 0,
                         end < length ? end : length};
}

#endif
