/* SPDX-License-Identifier: Apache-2.0
 * check_gpudirect: checks GPUs and the path between their memory and the adapters. */
#ifndef DOCTOR_CHECK_GPUDIRECT_H
#define DOCTOR_CHECK_GPUDIRECT_H

#include "checks.h"

extern const check gpudirect_checks[];

#endif
