/* SPDX-License-Identifier: Apache-2.0
 * pair_test: whether two hosts reach each other by TCP, both ways, and how fast. */
#ifndef DOCTOR_PAIR_TEST_H
#define DOCTOR_PAIR_TEST_H

#include "compare.h"
#include "doctor.h"

/** Runs two jobs of two ranks, each with its rank 0 on another of the two hosts, and adds their
 *  rows. */
void pair_test(const doctor_wishes *w, const doctor_host *a, const doctor_host *b, report *r);

#endif
