/* SPDX-License-Identifier: Apache-2.0
 * check_adapters: checks RDMA ports: whether they are up, their rates, partitions and addresses,
 * and how they perform in a test. */
#ifndef DOCTOR_CHECK_ADAPTERS_H
#define DOCTOR_CHECK_ADAPTERS_H

#include "checks.h"

extern const check adapters_checks[];

#endif
