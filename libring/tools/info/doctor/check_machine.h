/* SPDX-License-Identifier: Apache-2.0
 * check_machine: checks the limits of this process, and the memory and CPU cores that it can
 * use. */
#ifndef DOCTOR_CHECK_MACHINE_H
#define DOCTOR_CHECK_MACHINE_H

#include "checks.h"

extern const check machine_checks[];

#endif
