/* SPDX-License-Identifier: Apache-2.0
 *
 * args: command lines, the same for all programs. A program has a table with a row for each option:
 * argp makes --help from it and stores the values. A wrong value ends the program with ARGS_WRONG
 * and one line: the value, the reason, and the allowed values. In names '_' and '-' are the same,
 * and one dash before a whole name is accepted, as mpirun's -np.
 */
#ifndef RING_ARGS_H
#define RING_ARGS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

enum { ARGS_WRONG = 2 };

typedef struct args_row args_row;

/** An option as it was given. */
typedef struct args_given {
    const args_row *row;
    char *text;  /* its value; NULL: it has none         */
    void *field; /* what the row's ARGS_AT() names       */
    void *out;   /* the struct that args_parse() fills   */
    const struct argp_state *state;
} args_given;

struct args_row {
    const char *name;  /* NULL without a letter: the heading of the rows that follow */
    int letter;        /* 0: none */
    const char *value; /* the value's name in --help; NULL: the option has none */
    const char *help;
    void (*take)(const args_given *given); /* NULL: the option changes nothing */
    size_t at, size;                       /* of the field */
    long long least, most;
    const char *const *names; /* ended by NULL */
    /** argp's: OPTION_HIDDEN, _ALIAS, _ARG_OPTIONAL; _DOC: no option, for --help only. */
    int flags;
};

/** The field of a row. */
#define ARGS_AT(type, member) .at = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/* ---- What a row may take */

/** Stores most, or 1 if that is 0: for options without a value. */
void args_flag(const args_given *given);
/** A text that is not empty, which stays argv's. */
void args_text(const args_given *given);
/** A whole number from least to most. Where they allow one number or none, the row's help says why.
 */
void args_whole(const args_given *given);
/** Bytes, at least least: "64", "1.5M". Into a size_t. */
void args_size(const args_given *given);
/** Seconds from 0 to NUMBER_SECONDS_MOST. Into a double. */
void args_seconds(const args_given *given);
/** One of the row's names; its index is stored. */
void args_name(const args_given *given);

/* ---- Programs */

typedef struct args_program {
    const char *name;     /* for messages: "ringrun" */
    const args_row *rows; /* ended by a row of zeros */
    const char *words; /* the name in --help of words that are no options; NULL: none are taken */
    const char *doc;   /* as argp's */
    /** Takes one word or more of those from @p words on. @return how many. */
    int (*take)(char **words, int count, void *out);
    bool rest; /* the first word and all that follows are taken at once: unknown options among
                * them are another program's */
    /** Called before an unknown option "--word" is refused; may print a better message. NULL:
     *  none. */
    void (*unknown)(const char *word);
    bool quiet; /* wrong use ends the program without its line: another process of the same command
                   line prints it */
} args_program;

/** Fills @p out, which holds the defaults. --help, --usage and --version end the program. */
void args_parse(const args_program *program, int argc, char **argv, void *out);

/** Ends the program: the value cannot be. */
_Noreturn void args_refuse(const args_given *given, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Ends the program: the command line cannot be. Of use after args_parse(), too. */
_Noreturn void args_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
