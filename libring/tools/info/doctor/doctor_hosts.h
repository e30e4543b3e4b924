/* SPDX-License-Identifier: Apache-2.0
 * doctor_hosts: `ringinfo doctor --hosts`, which also says what differs between hosts, and how they
 * reach each other. */
#ifndef DOCTOR_HOSTS_H
#define DOCTOR_HOSTS_H

#include "doctor.h"

/** @return the exit status. */
int doctor_hosts(const doctor_wishes *w);

#endif
