/* SPDX-License-Identifier: Apache-2.0
 * doctor_hosts: implements `ringinfo doctor --hosts`, which examines each host, compares them, and
 * tests the connections between them. */
#ifndef DOCTOR_HOSTS_H
#define DOCTOR_HOSTS_H

#include "doctor.h"

/** Examines the hosts of @p w and prints the report. @return the exit status. */
int doctor_hosts(const doctor_wishes *w);

#endif
