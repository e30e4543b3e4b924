/* SPDX-License-Identifier: Apache-2.0
 * check_gpudirect: GPUs, and the way from their memory to the adapters. */
#ifndef DOCTOR_CHECK_GPUDIRECT_H
#define DOCTOR_CHECK_GPUDIRECT_H

#include "checks.h"

extern const check gpudirect_checks[];

#endif
