/* SPDX-License-Identifier: Apache-2.0
 * check_software: versions, settings, the secret, and ranks that were left behind. */
#ifndef DOCTOR_CHECK_SOFTWARE_H
#define DOCTOR_CHECK_SOFTWARE_H

#include "checks.h"

extern const check software_checks[];

#endif
