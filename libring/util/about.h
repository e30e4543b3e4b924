/* SPDX-License-Identifier: Apache-2.0
 * about: describes this build: version, compiler and features. All programs print it for --version.
 */
#ifndef RING_ABOUT_H
#define RING_ABOUT_H

/** @return the compiler and the build type. */
const char *about_compiler(void);
/** @return the optional parts that were built in. */
const char *about_features(void);
/** Prints "PROGRAM (libring) 0.1.0", the compiler and the features, a line each, to standard
 *  output. */
void about_print(const char *program);

#endif
