/* SPDX-License-Identifier: Apache-2.0
 * cmocka, behind the headers that it needs. */
#ifndef RING_UNIT_TEST_H
#define RING_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/** Ends the case as skipped. ./check shows @p reason, a literal, if all cases of the program are.
 */
#define skip_because(reason) (print_message("SKIPPED: " reason "\n"), skip())

#endif
