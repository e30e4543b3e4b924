/* SPDX-License-Identifier: Apache-2.0
 * cmocka, behind the headers that it needs. */
#ifndef RING_UNIT_TEST_H
#define RING_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
