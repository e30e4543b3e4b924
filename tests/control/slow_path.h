/* SPDX-License-Identifier: Apache-2.0
 * slow path: a port that leads to another one, as far away as the test says. */
#ifndef TEST_SLOW_PATH_H
#define TEST_SLOW_PATH_H

typedef struct slow_path slow_path;

/** @param round_trip  s; what arrives at either end was sent half of it before. */
slow_path *slow_path_new(double round_trip);
/** Connections to it lead to this port of 127.0.0.1 from now on. */
void slow_path_aim(slow_path *p, int port);
int slow_path_port(const slow_path *p);
void slow_path_free(slow_path *p);

#endif
