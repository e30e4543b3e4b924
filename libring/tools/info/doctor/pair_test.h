/* SPDX-License-Identifier: Apache-2.0
 * pair_test: tests whether two hosts reach each other by TCP and RDMA in both directions, and
 * measures how fast. */
#ifndef DOCTOR_PAIR_TEST_H
#define DOCTOR_PAIR_TEST_H

#include "compare.h"
#include "doctor.h"

/** Runs a job of two ranks in each direction, by TCP and then by RDMA, and adds rows to the report.
 */
void pair_test(const doctor_wishes *w, const doctor_host *a, const doctor_host *b, report *r);

#endif
