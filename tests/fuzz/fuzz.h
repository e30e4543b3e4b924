/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz: parsers are given mutated inputs. A parser accepts or refuses any bytes in time,
 * and its message is true. Input number N of a target depends on the seed and N
 * alone, so that one that failed is made again by --only TARGET --seed S --at N.
 */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include "base.h"

enum { FUZZ_SEEDS = 64 };

/** An input as it is written down, to be mutated. */
typedef struct fuzz_seed {
    unsigned char *bytes;
    size_t size;
    bool valid; /* must be accepted as it is */
} fuzz_seed;

typedef struct fuzz_seeds {
    fuzz_seed all[FUZZ_SEEDS];
    size_t count;
} fuzz_seeds;

typedef struct fuzz_target {
    const char *name;
    const char *reads; /* for --list              */
    size_t most;       /* bytes of an input       */
    bool text;         /* a NUL follows the bytes */
    void (*seeds)(fuzz_seeds *to);
    /** Gives the bytes, which end where their memory does, to the parser, and checks what it has
     *  accepted by must(). @return the parser's status; RING_OK: accepted. */
    ring_status (*parse)(const unsigned char *bytes, size_t size);
    /** The text of a refusal. NULL: the parser gives no reason, or parse() has checked it. */
    const char *(*reason)(void);
} fuzz_target;

/** Adds an input that must be accepted, or one of which nothing is expected: a regression. */
void fuzz_add(fuzz_seeds *to, const void *bytes, size_t size);
void fuzz_add_text(fuzz_seeds *to, const char *text);
void fuzz_add_any(fuzz_seeds *to, const void *bytes, size_t size);
void fuzz_add_any_text(fuzz_seeds *to, const char *text);
void fuzz_free(fuzz_seeds *seeds);

/** Ends the run, with the input, unless @p condition holds. */
#define must(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_broken(const char *what, const char *file, int line);

/** @return true if a terminal shows all of it: no control characters. */
bool fuzz_is_printable(const char *text);
/** A status that is no success, of the list of statuses, and a reason that can be shown. */
void fuzz_check_refusal(ring_status status, const char *reason);

#endif
