/* SPDX-License-Identifier: Apache-2.0
 * Tests of the arithmetic are run once a level, named by their first argument. */
#ifndef TEST_LEVEL_H
#define TEST_LEVEL_H

/* Selects the level argv[1]; ends the program as skipped (77), with the reason, where the
 * CPU lacks it. */
void level_from_arguments(int argc, char **argv);

#endif
