/* SPDX-License-Identifier: Apache-2.0
 * check_software: checks versions, settings, the secret, and ranks left over from earlier jobs. */
#ifndef DOCTOR_CHECK_SOFTWARE_H
#define DOCTOR_CHECK_SOFTWARE_H

#include "checks.h"

extern const check software_checks[];

#endif
