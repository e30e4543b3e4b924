/* SPDX-License-Identifier: Apache-2.0
 * check_machine: limits, memory and cores of this process. */
#ifndef DOCTOR_CHECK_MACHINE_H
#define DOCTOR_CHECK_MACHINE_H

#include "checks.h"

extern const check machine_checks[];

#endif
