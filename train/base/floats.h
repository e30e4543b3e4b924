/* SPDX-License-Identifier: Apache-2.0
 * floats: prints numbers as Python does, for log lines that users' scripts already parse. */
#ifndef TRAIN_FLOATS_H
#define TRAIN_FLOATS_H

/** Room for any result of float_repr(), its end included. */
#define FLOAT_TEXT_MAX 32

/** Python's repr(float): the shortest text that reads back as @p value, "0.1", "4.5e-07".
 *  @param[out] text  at least FLOAT_TEXT_MAX bytes. @return text. */
char *float_repr(double value, char *text);

#endif
