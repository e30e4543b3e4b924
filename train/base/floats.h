/* SPDX-License-Identifier: Apache-2.0
 * floats: prints numbers as Python does, for log lines that users' scripts already parse. */
#ifndef TRAIN_FLOATS_H
#define TRAIN_FLOATS_H

/** Bytes of the longest result of float_repr(), including the final zero. */
#define FLOAT_TEXT_MAX 32

/** Formats a number like Python's repr(float): as the shortest text that reads back as @p value,
 * such as "0.1" or "4.5e-07".
 *  @param[out] text  at least FLOAT_TEXT_MAX bytes. @return text. */
char *float_repr(double value, char *text);

#endif
