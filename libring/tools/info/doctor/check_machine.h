/* SPDX-License-Identifier: Apache-2.0
 * check_machine: checks the limits, memory and CPU cores of this process. */
#ifndef DOCTOR_CHECK_MACHINE_H
#define DOCTOR_CHECK_MACHINE_H

#include "checks.h"

extern const check machine_checks[];

#endif
