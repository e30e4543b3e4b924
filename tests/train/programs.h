/* SPDX-License-Identifier: Apache-2.0
 * Running ringtrain under ringrun and reading what it left. */
#ifndef TESTS_TRAIN_PROGRAMS_H
#define TESTS_TRAIN_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

enum { METRICS_MAX = 4000 };

/** Folders from the test's command line. */
typedef struct programs_paths {
    const char *bin;      /* folder of ringrun and ringtrain */
    const char *examples; /* docs/examples/mnist */
    const char *shared;   /* folder that may hold seeds/ and data/mnist */
} programs_paths;
extern programs_paths programs;

/** One run: exit status, everything printed, the metrics. */
typedef struct programs_run {
    int status;
    char *output;
    char *last_line; /* points into output */
    size_t steps;
    double loss[METRICS_MAX], lr[METRICS_MAX];
} programs_run;

/** Runs a shell command; metrics are not read. Free with programs_free(). */
programs_run *programs_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Runs ringtrain on @p ranks ranks (0: without ringrun) with the given arguments after
 *  "--metrics FILE --dump-params FILE". Free with programs_free(). */
programs_run *programs_train(int ranks, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** The same with a configuration's text, and with files_dataset()'s images. */
programs_run *programs_train_config(int ranks, const char *config, const char *options);
void programs_free(programs_run *run);

/** Fails the test unless the run went well. */
void programs_expect_success(const programs_run *run);

/** Fails unless @p text is in the output. */
void programs_expect_output(const programs_run *run, const char *text);

/** Fails unless all ranks dumped the same bytes. */
void programs_expect_same_params(int ranks);

/** @return the accuracy of the run's last line; fails if it is not one. */
double programs_accuracy(const programs_run *run);

/** @return the document in seeds/ whose name begins with @p number, to be free()d; skips the test
 *  if it is not there. */
char *programs_document(const char *number);

/** @return the folder of MNIST's files (RING_DATA or shared), or NULL. */
const char *programs_mnist(void);

#endif
