/* SPDX-License-Identifier: Apache-2.0
 *
 * report: whatever ends the run while an input is parsed, be it a signal, a sanitizer, exit() or
 * too much time, the input is shown first.
 */
#ifndef TEST_FUZZ_REPORT_H
#define TEST_FUZZ_REPORT_H

#include "fuzz.h"

/** An input that is being parsed. Borrowed. */
typedef struct report_input {
    const char *target;
    uint64_t seed, number;
    const unsigned char *bytes;
    size_t size;
} report_input;

/** @param limit  seconds that an input may take. */
void report_prepare(int limit);
void report_begin(const report_input *input);
void report_end(void);

/** @return true if memory was lost since the start; the sanitizer's report is on stderr. */
bool report_leaks(void);

#endif
