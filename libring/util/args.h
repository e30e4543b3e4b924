/* SPDX-License-Identifier: Apache-2.0
 *
 * args: parses the command lines of all programs in the same way. A program has a table with a row
 * for each option, from which argp produces --help and stores the values. A wrong value ends the
 * program with the status ARGS_WRONG and one line: the value, the reason, and the allowed values.
 * In names '_' and '-' are equivalent, and a complete name may follow a single dash, like mpirun's
 * -np.
 */
#ifndef RING_ARGS_H
#define RING_ARGS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

enum { ARGS_WRONG = 2 }; /* exit status for a wrong command line */

typedef struct args_row args_row;

/** An option of the command line, with its value. */
typedef struct args_given {
    const args_row *row;
    char *text;  /* the value of the option, or NULL     */
    void *field; /* the field of the row's ARGS_AT()     */
    void *out;   /* the struct that args_parse() fills   */
    const struct argp_state *state;
} args_given;

struct args_row {
    const char *name;  /* NULL, and no letter: the row is a heading for the rows after it */
    int letter;        /* 0: none */
    const char *value; /* the value's name in --help; NULL: the option has no value */
    const char *help;
    void (*take)(const args_given *given); /* NULL: the option has no effect */
    size_t at, size;                       /* offset and size of the field, by ARGS_AT() */
    long long least, most;                 /* the allowed numbers */
    const char *const *names;              /* the allowed words, ended by NULL */
    /** Flags of argp: OPTION_HIDDEN, OPTION_ALIAS, OPTION_ARG_OPTIONAL, or OPTION_DOC for a line of
     *  --help that is not an option. */
    int flags;
};

/** The field that an option sets, in the struct that args_parse() fills. */
#define ARGS_AT(type, member) .at = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/* ---- Functions for args_row.take */

/** Stores the row's `most`, or 1 if that is 0; for options without a value. */
void args_flag(const args_given *given);
/** Stores a pointer to the value, a text in argv, which must not be empty. */
void args_text(const args_given *given);
/** Stores a whole number from `least` to `most`. If these allow at most one number, the row's help
 *  is the message for a wrong value. */
void args_whole(const args_given *given);
/** Stores a number of bytes, at least `least`, such as "64" or "1.5M", in a size_t. */
void args_size(const args_given *given);
/** Stores seconds from 0 to NUMBER_SECONDS_MOST in a double. */
void args_seconds(const args_given *given);
/** Stores the index of the given word among the row's names. */
void args_name(const args_given *given);

/* ---- Programs */

typedef struct args_program {
    const char *name;     /* for messages: "ringrun" */
    const args_row *rows; /* ended by a row of zeros */
    const char *words; /* name of the operands in --help; NULL: the program accepts no operands */
    const char *doc;   /* text of --help before and, following \v, after the options */
    /** Processes at least one of the operands @p words. @return the number processed. */
    int (*take)(char **words, int count, void *out);
    bool rest; /* the first operand names another program, and all words after it belong to that
                  program */
    /** Called before the unknown option "--word" is rejected; may end the program with a better
     *  message. May be NULL. */
    void (*unknown)(const char *word);
    bool quiet; /* a wrong command line ends the program without a message, which another process
                   with the same command line prints */
} args_program;

/** Parses a command line into @p out, which holds the defaults. --help, --usage and --version end
 *  the program. */
void args_parse(const args_program *program, int argc, char **argv, void *out);

/** Ends the program with a message about the value of an option. */
_Noreturn void args_refuse(const args_given *given, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Ends the program with a message about the command line. May also be called after
 *  args_parse(). */
_Noreturn void args_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
