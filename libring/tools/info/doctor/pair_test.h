/* SPDX-License-Identifier: Apache-2.0
 * pair_test: tests whether two hosts reach each other by TCP and RDMA in both directions, and
 * measures how fast. */
#ifndef DOCTOR_PAIR_TEST_H
#define DOCTOR_PAIR_TEST_H

#include "compare.h"
#include "doctor.h"

/** Runs two jobs of two ranks, with rank 0 on either host, and adds their rows to the report. */
void pair_test(const doctor_wishes *w, const doctor_host *a, const doctor_host *b, report *r);

#endif
