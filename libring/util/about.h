/* SPDX-License-Identifier: Apache-2.0
 * about: what --version prints, the same for all programs. */
#ifndef RING_ABOUT_H
#define RING_ABOUT_H

/** Compiler and build type. */
const char *about_compiler(void);
/** Optional parts that were built in. */
const char *about_features(void);
/** "PROGRAM (libring) 0.1.0", compiler and features, a line each, on standard output. */
void about_print(const char *program);

#endif
