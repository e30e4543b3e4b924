/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks: runs a body once per rank, as threads of this process or as processes, and collects their
 * results. Bodies fail by fail(), since assertions belong to the main thread.
 */
#ifndef TEST_RANKS_H
#define TEST_RANKS_H

#include "control.h"

#include "unit_test.h"

#undef fail /* ours is a function; cmocka's needs another name */
#define stop_test(...) (print_error(__VA_ARGS__), _fail(__FILE__, __LINE__))
#include <sys/types.h>

enum { RANKS_MAX = 256 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/** @return the seconds that may pass: @p ordered where times are judged (RING_TEST_TIMED), else far
 *  more, for machines under load. */
double seconds_allowed(double ordered);

typedef struct outcome {
    ring_status status;
    char text[600];
    double seconds; /* how long the body ran */
} outcome;

typedef ring_status (*rank_body)(int rank, int size, void *context);

/** A place of each rank that all processes see, and the context of bodies. */
typedef struct crew {
    outcome outcomes[RANKS_MAX];
    pid_t pids[RANKS_MAX];
    int ranks[RANKS_MAX]; /* the rank passed to the i-th body; by default i */
    int started;          /* bodies to start; by default size */
} crew;

/** Zeroed memory that forked children share. */
void *shared_memory(size_t bytes);
void shared_free(void *memory, size_t bytes);

crew *crew_new(int size);
void crew_free(crew *c);
void crew_threads(crew *c, int size, rank_body body, void *context);
void crew_processes(crew *c, int size, rank_body body, void *context);
/** crew_processes() in two halves. */
void crew_fork(crew *c, int size, rank_body body, void *context);
void crew_wait(crew *c);

/** Shows every rank's text if not all have @p status. */
void crew_assert_all(const crew *c, ring_status status);
void outcome_assert(const outcome *o, ring_status status, const char *part);

/** A fresh id; the test ends if there is none. */
ring_unique_id new_id(void);
/** For worlds whose waiters need not be woken. */
void no_wake(void *unused);

/** Joins by the settings of the environment. */
ring_status join_by_id(const ring_unique_id *id, int size, int rank, uint32_t transports,
                       control_world **out);
ring_status join_by_env(uint32_t transports, control_world **out);

/** Joins by id, links with 2 lanes, sends a byte over each link, agrees. */
ring_status full_start(int rank, int size, void *id);
ring_status full_start_env(int rank, int size, void *unused);
/** Links and tries out @p world, which it frees. */
ring_status try_world(control_world *world);

/** The set-up of most tests: RING_INIT_TIMEOUT=20, RING_PEER_TIMEOUT=15. */
int set_timeouts(void **state);
#define TIMED_TEST(name) cmocka_unit_test_setup(name, set_timeouts)
/** Sets an environment variable. */
void set_number(const char *name, double value);
/** A port with @p count - 1 free ones above it, outside the range of automatic ports. */
int free_ports(int count);
/** A listener on 127.0.0.1:port, -1 if taken. */
int listen_at(int port);
int connect_to(int port);
/** Open descriptors of this process. */
int count_fds(void);
bool is_root(void);
/** Whether it is dead, with all that it had open closed; its parent may not have asked for it yet.
 */
bool process_is_dead(pid_t pid);

#endif
