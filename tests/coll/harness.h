/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one function as several ranks, as threads of this process or as processes of their
 * own, with a board of shared memory between them. Used by all tests of whole communicators.
 */
#ifndef RING_TEST_HARNESS_H
#define RING_TEST_HARNESS_H

#include <ring/ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { HARNESS_MAX_RANKS = 1024, HARNESS_BOARD_BYTES = 1 << 20 };

/** Shared memory of a run's ranks. Zeroed at the start. */
typedef struct harness_board {
    _Atomic int id_ready;
    ring_unique_id id;
    pid_t pids[HARNESS_MAX_RANKS];
    _Atomic int counters[64];
    _Alignas(64) unsigned char data[HARNESS_BOARD_BYTES];
} harness_board;

/** Seconds. A wait that an event ends is far shorter, on a loaded machine too; a time-out is
 * longer. */
#define HARNESS_PROMPT 12.0
bool harness_is_prompt(double since);
/** Whether times are judged: by the long runs, which have the machine to themselves. */
bool harness_is_timed(void);

/** Waits until a counter of the board is @p value or more, without a call of the library.
 *  @return false: it has not become so in ten times HARNESS_PROMPT. */
bool harness_await(const harness_board *board, int counter, int value);

/** @return true if this thread's latest error text has @p text in it. */
bool harness_says(const char *text);

/** Sums @p count elements that name @p mine, this rank's number. @param want  the sum of all
 * ranks'.
 *  @return 0 if each element is right. */
int harness_expect_sum(ring_comm *comm, int mine, int want, int count);

/** Sorts them. @return the median, 0 of none. */
double harness_median(double *values, size_t count);

/** @return 0 if the rank succeeded. */
typedef int (*harness_body)(int rank, int ranks, harness_board *board, void *arg);

typedef enum harness_kind { HARNESS_THREADS, HARNESS_PROCESSES } harness_kind;

/** Threads for loop and its double rma, processes for everything else. */
harness_kind harness_kind_of(const char *transport);

/** Sets RING_TRANSPORT. With RING_TEST_HOSTS=N, ranks pretend to be on N hosts in turn; the
 * transport then joins those of a host, and RING_TEST_WIRE, by default tcp, joins hosts. */
void harness_use(const char *transport);

/** @return number of ranks that failed (a killed process has failed); `board` may be NULL. */
int harness_run(harness_kind kind, int ranks, harness_body body, void *arg, harness_board **board);
void harness_board_free(harness_board *board);

/** Runs ranks over a transport: as processes, or as threads of one process of their own, which have
 *  no memory, driver or GPU of earlier runs. @param start  called in that process before there are
 *  threads, e.g. because it forks; NULL: nothing. @return number of ranks that failed. */
int harness_run_apart(const char *transport, int ranks, harness_body body, void *arg,
                      int (*start)(void));
/** The same as harness_run() for processes, with `beside` called here once they are started. */
int harness_run_beside(int ranks, harness_body body, void *arg,
                       void (*beside)(harness_board *board, void *arg));

/** Joins the communicator of this run: rank 0 makes the id, the others read it. */
ring_status harness_join(int rank, int ranks, harness_board *board, ring_comm **comm);

/** A number of the environment, e.g. how often to repeat; @p otherwise if it is not set. */
uint64_t harness_number(const char *name, uint64_t otherwise);

/** Seconds of a clock that only goes on. */
double harness_now(void);

/** @return the messages that this rank's host has sent; UINT64_MAX if that is unknown. */
uint64_t harness_messages_sent(const ring_comm *comm);

/** Prints and returns 1 unless `condition`. */
#define EXPECT(condition, ...) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__); \
            fprintf(stderr, "\n"); \
            return 1; \
        } \
    } while (0)
/** The call is refused for its arguments, and says @p text. */
#define EXPECT_REFUSED(call, text) \
    do { \
        EXPECT((call) == RING_ERR_ARGUMENT, "not refused"); \
        EXPECT(harness_says(text), "%s", ring_last_error(NULL)); \
    } while (0)
#define EXPECT_OK(call) \
    do { \
        const ring_status expect_status = (call); \
        EXPECT(expect_status == RING_OK, "%s: %s", ring_status_string(expect_status), \
               ring_last_error(NULL)); \
    } while (0)

#endif
