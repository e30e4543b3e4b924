/* SPDX-License-Identifier: Apache-2.0
 *
 * libring: collective communication for training on many CPUs and GPUs.
 *
 *     ring_comm *comm;
 *     if (ring_comm_init_env(&comm) != RING_OK)     // under ringrun, torchrun, mpirun, srun
 *         return 1;                                 // the reason was printed
 *     float *grad;
 *     ring_mem_alloc((void **)&grad, n * sizeof *grad);   // zero-copy among local ranks
 *     ring_all_reduce(grad, grad, n, RING_FLOAT32, RING_AVG, comm, NULL);
 *     ring_mem_free(grad);
 *     ring_comm_destroy(comm);
 *
 * Rules that hold everywhere:
 *  - No call blocks for ever: each has a deadline (RING_TIMEOUT, or ring_call.timeout).
 *  - Ranks call collectives of one communicator in the same order with the same
 *    arguments; a difference is an error on every rank that shows both calls.
 *  - Buffers are borrowed from the call until it completes, then are the caller's again.
 *  - A communicator may be used from several threads, one call at a time each.
 *  - On error, outputs are unspecified and the communicator is finished: all later
 *    calls return the first error. ring_last_error() gives cause and place. Peers may
 *    access buffers of the failed calls until they have seen the error too, at most seconds
 *    later: reuse them after ring_comm_destroy() of all ranks, or not at all.
 */
#ifndef RING_RING_H
#define RING_RING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define RING_VERSION_MAJOR 0
#define RING_VERSION_MINOR 2
#define RING_VERSION_PATCH 0
#define RING_VERSION_CODE \
    (RING_VERSION_MAJOR * 10000 + RING_VERSION_MINOR * 100 + RING_VERSION_PATCH)

/* ---- Status ------------------------------------------------------------------ */

/** The one list of results: name, value, text. Values are stable. */
#define RING_STATUS_LIST(X) \
    X(RING_OK, 0, "success") \
    X(RING_IN_PROGRESS, 1, "not finished yet") \
    X(RING_ERR_ARGUMENT, 10, "an argument is out of range") \
    X(RING_ERR_USAGE, 11, "the call is not allowed in this state") \
    X(RING_ERR_CONFIG, 12, "a setting, variable or file is wrong") \
    X(RING_ERR_UNSUPPORTED, 13, "not supported here") \
    X(RING_ERR_MEMORY, 20, "out of memory") \
    X(RING_ERR_SYSTEM, 21, "an operating system call failed") \
    X(RING_ERR_AUTH, 30, "a peer could not prove that it belongs to this job") \
    X(RING_ERR_TIMEOUT, 31, "the deadline passed") \
    X(RING_ERR_PEER, 32, "a peer failed or was lost") \
    X(RING_ERR_MISMATCH, 33, "ranks made different calls") \
    X(RING_ERR_ABORTED, 34, "the communicator was aborted") \
    X(RING_ERR_INTERNAL, 40, "a bug in libring")

typedef enum ring_status {
#define RING_STATUS_ENUM(name, value, text) name = value,
    RING_STATUS_LIST(RING_STATUS_ENUM)
#undef RING_STATUS_ENUM
        RING_STATUS_LAST = RING_ERR_INTERNAL /* C89 and C++98 want no comma at the end */
} ring_status;

/** @return the text of @p status, a static string; never NULL. */
const char *ring_status_string(ring_status status);

/** @return RING_VERSION_CODE of the loaded library, e.g. 200 for 0.2.0. */
int ring_version(void);

/* ---- Types ------------------------------------------------------------------- */

/** Element types. Floats of 16 and of 8 bits are combined in float32 at every hop and rounded once,
 *  to nearest even. Those of 8 bits are OCP's: e4m3fn has no infinities, and a value too large for
 *  either becomes its largest finite number (448, 57344), infinities of e5m2 too.
 *  Other types are views of these. A bool of one byte is RING_UINT8: its sum and maximum are
 *  RING_LOR, its product and minimum RING_LAND, its exclusive or RING_LXOR. A complex number is two
 *  floats, so it counts twice: RING_SUM, RING_AVG and RING_PREMUL_SUM are those of its parts, and
 *  there is no PROD, MIN or MAX.
 *  Elements of any size that are only moved are so many RING_UINT8. */
typedef enum ring_dtype {
    RING_INT8 = 0,
    RING_UINT8 = 1,
    RING_INT32 = 2,
    RING_UINT32 = 3,
    RING_INT64 = 4,
    RING_UINT64 = 5,
    RING_FLOAT16 = 6,
    RING_FLOAT32 = 7,
    RING_FLOAT64 = 8,
    RING_BFLOAT16 = 9,
    RING_FLOAT8_E4M3 = 10,
    RING_FLOAT8_E5M2 = 11,
    RING_INT16 = 12,
    RING_UINT16 = 13,
    RING_DTYPE_COUNT = 14
} ring_dtype;

/** Reductions. Integers wrap; RING_AVG of integers divides the sum, rounding to zero.
 *  MIN and MAX give NaN if any input is NaN. From RING_BAND to RING_LXOR they are for integers
 * alone: of each bit, or of whether an element is not 0, with 0 or 1 as the result. RING_PREMUL_SUM
 * is for floats alone: each rank's elements are multiplied by its own factor (ring_call.scale) and
 * then added. The factor is rounded to float32 (to float64 for RING_FLOAT64), a product to the
 * type, and sums are those of RING_SUM. Cost: one more pass over src, and where dst is not as long
 * as src, or not there, memory of the communicator as long as src, which is kept. */
typedef enum ring_op {
    RING_SUM = 0,
    RING_PROD = 1,
    RING_MAX = 2,
    RING_MIN = 3,
    RING_AVG = 4,
    RING_BAND = 5,
    RING_BOR = 6,
    RING_BXOR = 7,
    RING_LAND = 8,
    RING_LOR = 9,
    RING_LXOR = 10,
    RING_PREMUL_SUM = 11,
    RING_OP_COUNT = 12
} ring_op;

/** @return bytes of one element, 0 for an unknown type. */
size_t ring_dtype_size(ring_dtype dtype);

/** @return the name ("float32", "sum"), or "?" for an unknown value; static. */
const char *ring_dtype_name(ring_dtype dtype);
const char *ring_op_name(ring_op op);

/** @return 1 if the operation applies to the type, 0 if calls refuse the two. */
int ring_op_serves(ring_op op, ring_dtype dtype);

/* ---- Communicators ----------------------------------------------------------- */

typedef struct ring_comm ring_comm;
typedef struct ring_work ring_work;

#define RING_UNIQUE_ID_BYTES 128
/** Address of rank 0 and the random key of one communicator. A process that has it may join:
 *  pass it to the other ranks by a private way (MPI, a store, a file of mode 0600). */
typedef struct ring_unique_id {
    unsigned char bytes[RING_UNIQUE_ID_BYTES];
} ring_unique_id;

/** Makes an id and takes a port for it, where rank 0 listens while it joins.
 *  @param[out] id  filled on success; serves one communicator.
 *  The process that calls this must be the one of rank 0. The port is of one address of this host:
 *  RING_ADDR, else that of the first interface that RING_SOCKET_IFNAME allows, else the first
 *  that is no loopback and no bridge; 127.0.0.1 if there is no other. The random key in the
 *  id keeps strangers out.
 *  @return RING_OK, RING_ERR_SYSTEM, RING_ERR_CONFIG. */
ring_status ring_get_unique_id(ring_unique_id *id);

/** Joins the communicator @p id as @p rank of @p size. Collective: returns when all ranks
 *  have joined, or with an error that lists the missing ones (RING_INIT_TIMEOUT).
 *  Ranks may be processes, or threads of one process. A failure is also one line on standard
 *  error, since there is no communicator then that could be asked for the reason.
 *  @param[out] comm  to be given to ring_comm_destroy(); NULL on failure.
 *  @return RING_OK, RING_ERR_ARGUMENT, RING_ERR_CONFIG, RING_ERR_AUTH, RING_ERR_TIMEOUT,
 *          RING_ERR_PEER, RING_ERR_MEMORY, RING_ERR_SYSTEM. */
ring_status ring_comm_init(ring_comm **comm, int size, const ring_unique_id *id, int rank);

/** Options of a new communicator; NULL for the environment's. Start from RING_CONFIG_INIT; members
 *  beyond `size` are taken as zero. */
typedef struct ring_config {
    size_t size; /**< sizeof(ring_config) */
    /** Settings as in the environment, and ahead of it: "RING_ALGO=ring", "RING_TRANSPORT=shm", …,
     *  then NULL (`ringinfo env` lists them). NULL: none. Where all must agree, rank 0's hold. */
    const char *const *settings;
    /** 1: return at once, so that one thread can begin to join as several ranks, or several
     *  communicators. ring_comm_status() is RING_IN_PROGRESS until the start is over; the first
     *  call that needs the communicator waits for it, and returns its error if it failed. */
    int nonblocking;
    /** 1: a failure is not printed, since the caller shows ring_last_error(NULL). */
    int quiet;
} ring_config;

#define RING_CONFIG_INIT \
    { \
        sizeof(ring_config), NULL, 0, 0 \
    }

/** ring_comm_init() with options. @return also RING_ERR_CONFIG for a setting that is wrong. */
ring_status ring_comm_init_config(ring_comm **comm, int size, const ring_unique_id *id, int rank,
                                  const ring_config *config);

/** ring_comm_init() from the environment: RING_*, torchrun, PMIx, Open MPI, PMI, Slurm; without
 *  any of them a communicator of one rank. A failure is printed, too. */
ring_status ring_comm_init_env(ring_comm **comm);

/** The ranks that give this as their colour belong to no communicator of a split. */
#define RING_SPLIT_NONE (-1)

/** Makes smaller communicators: one for each colour, of the ranks that give it. Collective over
 *  @p parent, as a call of its own among the others. It opens no socket and starts no thread;
 *  a connection that a pair of ranks needs is made when they first use it. The communicators fail
 *  independently: a lost rank ends those that it belongs to.
 *  @param colour    0 or more; RING_SPLIT_NONE: this rank is in none.
 *  @param key       orders the ranks of a colour; equal keys by their rank in the parent.
 *  @param[out] out  to be given to ring_comm_destroy(), before or after the parent; NULL for
 *                   RING_SPLIT_NONE and on failure.
 *  @return what ring_all_gather() returns; RING_ERR_MEMORY on all ranks if one has none: then the
 *          parent lives on. Cost: a gathering of 16 bytes a rank and an all_reduce of 4. */
ring_status ring_comm_split(ring_comm *parent, int colour, int key, ring_comm **out);

/** A second communicator of the same ranks, whose calls neither wait for nor match those of the
 *  first, for a library or a thread of its own. As ring_comm_split() with one colour. */
ring_status ring_comm_dup(ring_comm *parent, ring_comm **out);

/** Makes a communicator of some ranks of @p parent by a call of these alone, as MPI's
 *  MPI_Comm_create_group: the other ranks do nothing. It opens no socket and starts no thread.
 *  Calls on the parent go on, and are not waited for; it takes no place in their order. Any thread.
 *  @param ranks  [count] of the parent, in the order of their new ranks; the same list on each of
 *                them, and this rank is in it.
 *  @param tag    0 or more: tells calls for one list apart that may be under way at once, from
 *                several threads say. Lists of other ranks, or in another order, never match.
 *                Tags should be used again: each list and tag takes memory of the parent's.
 *  @param[out] out  to be given to ring_comm_destroy(), before or after the parent; NULL on
 *                   failure.
 *  @return RING_OK; RING_ERR_TIMEOUT: not all of the list have called within RING_TIMEOUT of the
 *          first; the text names those, and whether they called for another list; one that
 *          calls later is in the next round. RING_ERR_MEMORY on all if one has none. In both cases
 *          the parent lives on. RING_ERR_PEER: one was lost, or what else ended the parent.
 *          RING_ERR_USAGE: another thread of this rank waits with the same list and tag.
 *  Cost: two short messages of each member to all ranks of the start, and two answers. */
ring_status ring_comm_create(ring_comm *parent, const int *ranks, int count, int tag,
                             ring_comm **out);

/** The same for all ranks of @p comm but @p ranks, called by those that stay; they keep their
 *  order. As ncclCommShrink() of a communicator that has not failed: @p comm lives on, with its
 *  calls, and is still to be destroyed.
 *  @param ranks  [count] that are left out, in any order; 0 of them: a communicator of all. */
ring_status ring_comm_exclude(ring_comm *comm, const int *ranks, int count, ring_comm **out);

/** Goes on with the survivors of a communicator that has failed. Collective over them: waits until
 *  all survivors have called it, RING_TIMEOUT at most; a rank that has not by then is left out.
 * Their order stays. Their calls on the broken one have ended, so buffers may be used again when
 * this returns;
 *  @p broken is still to be destroyed.
 *  @param[out] out  the new communicator; NULL on failure.
 *  @return RING_OK; RING_ERR_USAGE: it has not failed; RING_ERR_PEER: this rank is out, or a rank
 *          of one of these hosts is stopped, not gone, and might wake and write (kill it and call
 *          again), or more than half of the ranks are silent; RING_ERR_TIMEOUT, RING_ERR_MEMORY. */
ring_status ring_comm_shrink(ring_comm *broken, ring_comm **out);

/** Leaves the communicator and frees it. Outstanding work is aborted, or ends with the failure
 *  that had ended the communicator before; its handles may still be waited for, and then say so.
 *  NULL is allowed. Other ranks may finish calls that need nothing
 *  more from this one. A rank that ends without it is lost to the others, with any exit
 *  status. In a forked child it does nothing: the communicator is the parent's, and every
 *  other call on it there is RING_ERR_USAGE. */
void ring_comm_destroy(ring_comm *comm);

/** Ends the communicator on all ranks: every waiting call returns RING_ERR_ABORTED.
 *  May be called from any thread at any time; @p reason is shown on every rank. */
ring_status ring_comm_abort(ring_comm *comm, const char *reason);

/** @return RING_OK, or the error that ended the communicator; RING_IN_PROGRESS while a start that
 *  returned at once goes on. Never blocks. */
ring_status ring_comm_status(const ring_comm *comm);

/** Facts about a communicator, and its counters so far. Sizes in bytes. */
typedef struct ring_comm_info {
    size_t size;                 /**< sizeof(ring_comm_info), set by the caller */
    int rank, ranks;             /**< this rank, number of ranks */
    int local_rank, local_ranks; /**< among the ranks of this host */
    int hosts;                   /**< number of hosts */
    char transport[32];          /**< "shm", "tcp", …; "shm+tcp" where links differ; "self" */
    char algorithm[32];          /**< algorithm of the latest collective, "" before */
    double predicted_us;         /**< the cost model's time for that collective; 0: none, as where
                                      ranks share cores */
    uint64_t bytes_sent;         /**< payload handed to peers, by message or by reference */
    uint64_t bytes_received;
    uint64_t messages_sent; /**< plan messages, i.e. transfers */
    uint64_t memory;        /**< bytes held for this communicator, mappings of peers apart */
    double init_seconds;    /**< time that ring_comm_init took */
    char launcher[32];      /**< where rank and size came from: "ringrun", "torchrun", … */
    uint64_t lowered;       /**< calls so far that needed a new program; the others, of a kind
                                 that was made before, found one */
} ring_comm_info;

/** Fills @p info up to its own size field.
 *  @return RING_OK, RING_ERR_ARGUMENT, or RING_ERR_USAGE in a forked child. */
ring_status ring_comm_get_info(const ring_comm *comm, ring_comm_info *info);

/** @return this rank's number / the number of ranks; -1 for NULL. */
int ring_comm_rank(const ring_comm *comm);
int ring_comm_size(const ring_comm *comm);

/** @return the error, with rank, host, call and cause; "" if there was none.
 *  @p comm NULL: the calling thread's latest failure. Valid until the communicator is
 *  destroyed (or the thread's next failure). */
const char *ring_last_error(const ring_comm *comm);

/* ---- Memory ------------------------------------------------------------------ */

/** Allocates memory that ranks of one host read and write in place, with no copy.
 *  Any buffer works with any call; this kind is the fastest. A process has up to twice the
 *  machine's memory of it in all (64 GiB at most; less under ulimit -v or -f); each local
 *  peer maps as much address space. An allocation takes a page more than it asks for.
 *  A forked child does not have it: a touch there faults (SIGSEGV), so that the child neither
 *  changes what ranks compute nor saves what they have changed since. Copy to malloc() memory
 *  before fork(), to write a checkpoint in a child, say. The child's allocations are its own.
 *  system(), popen() and posix_spawn() are not concerned.
 *  @param[out] ptr   page-aligned, zeroed, private to the user; NULL for @p bytes 0.
 *  @return RING_OK or RING_ERR_MEMORY (with the bytes wanted). Cost: touches every page. */
ring_status ring_mem_alloc(void **ptr, size_t bytes);

/** Gives it back; no call may still use it. NULL is allowed.
 *  @return RING_OK, or RING_ERR_ARGUMENT if it was not allocated in this process. */
ring_status ring_mem_free(void *ptr);

/** Makes any memory a region that peers may touch, for buffers that are not of ring_mem_alloc()
 *  and serve many calls. Ranks of one process (loop) read and write it in place; transports that
 *  put and get use it directly; shm and tcp carry it, as they do without this. It never changes
 *  results. A buffer counts if it lies within one region.
 *  @param ptr  [bytes], of the caller; to be deregistered before it is freed. It overlaps no
 *              other region and no memory of ring_mem_alloc().
 *  @return RING_OK; RING_ERR_ARGUMENT: NULL, 0 bytes, or an overlap; RING_ERR_MEMORY: 16384
 *          regions are there. Any thread; forked children start without regions. */
ring_status ring_mem_register(void *ptr, size_t bytes);

/** Ends it. @param ptr  as given to ring_mem_register().
 *  @return RING_OK; RING_ERR_ARGUMENT: not registered in this process; RING_ERR_USAGE: running
 *          calls use it, and it stays. */
ring_status ring_mem_deregister(void *ptr);

/* ---- Call options and work handles ---------------------------------------------- */

/** A condition that a call can wait for: set once, by any thread. */
typedef struct ring_event ring_event;
/** @param[out] event  to be given to ring_event_destroy(). @return RING_OK or RING_ERR_MEMORY. */
ring_status ring_event_create(ring_event **event);
/** Opens the event for the calls that wait for it (ring_call.after).
 *  @param status  RING_OK; anything else fails the communicators of the calls that wait.
 *  @return RING_ERR_USAGE if it was set before, RING_ERR_ARGUMENT. */
ring_status ring_event_set(ring_event *event, ring_status status);
/** Gives it back; calls that wait for it keep it in being until they end. NULL is allowed. */
void ring_event_destroy(ring_event *event);

/** Called once when a call has ended, with its result: by any thread that happens to finish it,
 *  which holds no lock of the library. It may start calls, but not wait, and not destroy
 *  a communicator; it should return within milliseconds, as it may run on the library's thread
 *  that progresses all calls without a waiting thread (RING_PROGRESS). With RING_PROGRESS=none it
 * is called only while a thread of this process is in a call of libring. */
typedef void (*ring_done)(void *context, ring_status status);

/** As the peer of a tagged ring_recv(): any rank, itself too. */
#define RING_ANY_SOURCE (-1)
/** As the tag of a tagged ring_recv(): any tag. */
#define RING_ANY_TAG (-1)
/** The sender of a tagged message, and its tag. */
typedef struct ring_envelope {
    int source;
    int tag;
} ring_envelope;

/** Options of one call; pass NULL for none. Start from RING_CALL_INIT. Fields behind `size` are
 *  taken as zero, so programs keep running when the struct grows. */
typedef struct ring_prepared ring_prepared;
typedef struct ring_call {
    size_t size;       /**< sizeof(ring_call) */
    ring_work **work;  /**< not NULL: return at once; *work is the handle, for ring_wait() */
    void *stream;      /**< not NULL: the call takes its place in this stream of an accelerator, and
                            returns at once; see below */
    double timeout;    /**< seconds until RING_ERR_TIMEOUT, from the start or from the moment when
                            `after` is set and `stream` has come there; 0: RING_TIMEOUT */
    ring_event *after; /**< not NULL: nothing is read, written or sent before this event is set */
    ring_done on_done; /**< not NULL: called at the end. Without `work` the call then returns at
                            once, too, and has no handle */
    void *context;     /**< of on_done */
    ring_prepared **prepared; /**< not NULL: the call is not made but kept, see
                                   ring_prepared_start(); no other option is given then but
                                   the tag */
    const double *scale; /**< of RING_PREMUL_SUM, and of nothing else: this rank's factor, finite;
                              0 is one as well. Read before the call returns */
    int tagged; /**< 1: a send or recv that meets its other end by `tag`, see ring_send() */
    int tag;    /**< with `tagged`: 0 or more; of a recv also RING_ANY_TAG */
    ring_envelope *envelope; /**< of a tagged recv, may be NULL: where the sender and the tag of
                                  what it got are put, before it ends with RING_OK */
} ring_call;

#define RING_CALL_INIT \
    { \
        sizeof(ring_call), NULL, NULL, 0.0, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL \
    }

/* With ring_call.stream, as with NCCL: nothing is read, written or sent before the stream has come
 * to the place of the call, what is asked of it later comes after the call's result, and no thread
 * of the host waits. The call ends without its caller: `work` gives a handle besides. NULL is no
 * stream: CUDA's default ones are cudaStreamLegacy and cudaStreamPerThread.
 *  - Buffers are memory of the stream's accelerator, registered or not, or the host's where
 *    the accelerator's streams order that, too; else RING_ERR_UNSUPPORTED, as for a stream of no
 *    accelerator. Ranks need not all give one, but where GPUs run calls themselves: there a
 *    collective has a stream, and buffers of the GPU, on all ranks or on none (docs/devices.md).
 *  - A call takes its place among those of the communicator when it is made, in whatever stream.
 *    One that waits for another behind it in the same stream needs a group with it: calls of a
 * group behind one stream share a place there.
 *  - A stream that is captured into a graph keeps the call, without work, on_done, after and tag,
 * and each replay makes it. From then on calls of the communicator that are behind streams take
 * their places when these come to them: in the same order on all ranks, and calls without a stream
 * when those are over. A replay after ring_comm_destroy() does nothing.
 *  - When the communicator, or its accelerator, fails the stream goes on, with the results
 * undefined; ring_comm_status() and later calls tell. ring_comm_destroy() does not wait for the
 * stream.
 *  - With RING_PROGRESS=none such a call needs `work`, and goes on only in calls of libring. */

/** Waits until the work is done, frees the handle and sets *handle to NULL, whatever the result.
 *  Before that a thread of the library moves the call while its caller computes (RING_PROGRESS);
 *  the waiting caller takes over. It spins a little, then yields, then sleeps in the kernel;
 *  meanwhile it also progresses calls of the process's other communicators without a waiter. A
 *  call whose `after` is not set, or whose `stream` is not there, within RING_TIMEOUT gives
 * RING_IN_PROGRESS and keeps its handle. Several threads may wait for one call at once, or test it,
 * each with a copy of the pointer in a variable of its own: all that came before one of them had
 * its result get it, too. Later ones are refused; threads that may come at any time use
 * ring_wait_keep().
 *  @param handle  where ring_call.work put it; *handle NULL is RING_OK.
 *  @return the call's result; RING_ERR_USAGE for a handle that has ended before. */
ring_status ring_wait(ring_work **handle);

/** The same for at most @p seconds; RING_IN_PROGRESS when they are over: the call goes on. */
ring_status ring_wait_for(ring_work **handle, double seconds);

/** The same without freeing the handle: any number of threads may wait with it, at once and again
 *  after the end, and each gets the result. One ring_wait() or ring_test() frees it in the end,
 *  when no thread waits with it any more. @p handle NULL is RING_OK. */
ring_status ring_wait_keep(ring_work *handle, double seconds);

/** Waits for all @p count handles (NULL ones are done). @return the first error among them. */
ring_status ring_wait_all(ring_work **works, size_t count);

/** Waits for one of them, whichever is first. @param[out] index  of it; @p count if all were
 *  NULL, or none has ended. @return its result; RING_IN_PROGRESS if all of them are behind events
 *  that were not set within their time-out: the calls go on. */
ring_status ring_wait_any(ring_work **works, size_t count, size_t *index);

/** Advances the work without blocking. *done becomes 1 when it is finished (well or not);
 *  then the handle is freed, *handle is NULL and the result returned. Otherwise RING_OK and *done
 * 0. Calls advance without it, too, by a thread of the library, unless RING_PROGRESS=none. */
ring_status ring_test(ring_work **handle, int *done);

/** The same for all of them at once: *done is 1, and the handles are freed, only when every one
 *  is finished. @return the first error among them. */
ring_status ring_test_all(ring_work **works, size_t count, int *done);

/* ---- Collectives ----------------------------------------------------------------
 * S = bytes of the whole vector, n = ranks. "In place" means exactly the stated pointer
 * equality; any other overlap of src and dst is an error of the caller.
 * All return RING_OK; RING_ERR_ARGUMENT, _USAGE or _UNSUPPORTED before anything was sent; or
 * one of RING_ERR_TIMEOUT, _PEER, _MISMATCH, _ABORTED, _MEMORY, _SYSTEM, _INTERNAL, which end
 * the communicator. A call that is refused for its arguments has taken its place in the order:
 * where all ranks refuse it alike nothing happens, else those that made it get RING_ERR_MISMATCH
 * with the reason.
 * A call returns when this rank's part is done. Short messages (128 KiB of a call to a peer at
 * most) are copied ahead of their receivers, so a short broadcast, reduce, gather, scatter, scan,
 * send or v-form of these may return before its peers have called it; if they called something
 * else, a later call says so.
 * Every rank gets the same bits, on every run with the same ranks, count, type and
 * algorithm. Integers wrap. RING_AVG divides the sum by the ranks: floats by one correctly
 * rounded division (those of 16 and 8 bits in float32, and rounded once), integers towards zero. */

/** dst[i] = op over ranks of src[i], on every rank.
 *  @param src, dst  [count] elements; in place if src == dst.
 *  Cost of the ring: 2(n-1) transfers and 2(n-1)/n * S bytes sent a rank
 *  (Patarasuk and Yuan, JPDC 69, 2009). */
ring_status ring_all_reduce(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                            ring_comm *comm, const ring_call *call);

/** Rank r gets block r of the reduction.
 *  @param src  [ranks * count]; @param dst [count]; in place if dst == src + rank * count.
 *  Cost of the ring: n-1 transfers, (n-1)/n * S bytes sent. */
ring_status ring_reduce_scatter(const void *src, void *dst, size_t count, ring_dtype dtype,
                                ring_op op, ring_comm *comm, const ring_call *call);

/** Every rank gets all ranks' blocks in rank order.
 *  @param src  [count]; @param dst [ranks * count]; in place if src == dst + rank * count.
 *  Cost of the ring: n-1 transfers, (n-1)/n * S bytes sent. */
ring_status ring_all_gather(const void *src, void *dst, size_t count, ring_dtype dtype,
                            ring_comm *comm, const ring_call *call);

/** dst = root's src on every rank.
 *  @param src [count], read on the root only (may be NULL elsewhere); @param dst [count]; in
 *  place if src == dst. */
ring_status ring_broadcast(const void *src, void *dst, size_t count, ring_dtype dtype, int root,
                           ring_comm *comm, const ring_call *call);

/** dst = op over ranks of src, on the root only. @param dst [count], written on the root
 *  only (may be NULL elsewhere); in place if src == dst on the root. */
ring_status ring_reduce(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                        int root, ring_comm *comm, const ring_call *call);

/** The root gets all ranks' blocks in rank order.
 *  @param src  [count]; @param dst [ranks * count], written on the root only (may be NULL
 *  elsewhere); in place if src == dst + rank * count on the root.
 *  Cost: n-1 transfers into the root, (n-1)/n * S bytes, straight from each rank. */
ring_status ring_gather(const void *src, void *dst, size_t count, ring_dtype dtype, int root,
                        ring_comm *comm, const ring_call *call);

/** Rank r gets block r of the root's src.
 *  @param src  [ranks * count], read on the root only (may be NULL elsewhere); @param dst [count];
 *  in place if dst == src + rank * count on the root.
 *  Cost: n-1 transfers out of the root, (n-1)/n * S bytes, straight to each rank. */
ring_status ring_scatter(const void *src, void *dst, size_t count, ring_dtype dtype, int root,
                         ring_comm *comm, const ring_call *call);

/** Rank r gets block r of every rank's src, in rank order.
 *  @param src, dst  [ranks * count], without overlap: never in place.
 *  Cost: n-1 transfers, (n-1) * count elements sent a rank, a connection for each pair. */
ring_status ring_all_to_all(const void *src, void *dst, size_t count, ring_dtype dtype,
                            ring_comm *comm, const ring_call *call);

/** dst[i] on rank r = op over ranks 0 to r of src[i], combined in the order of ranks.
 *  @param src, dst  [count] elements; in place if src == dst. @param op  not RING_AVG.
 *  Cost: every rank but the last sends count elements of the accumulator's type, the last result
 *  is ready after n-1 of them in a row, in a pipeline; short calls of up to 64 ranks meet once. */
ring_status ring_scan(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                      ring_comm *comm, const ring_call *call);

/** The same over ranks 0 to r - 1. On rank 0 dst is not written and may be NULL. */
ring_status ring_exscan(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                        ring_comm *comm, const ring_call *call);

/* The v-forms: blocks have lengths of their own. `counts` are [ranks] elements, one for each rank's
 * block, 0 allowed; `displs` are [ranks] elements from the buffer's start to each block, NULL: one
 * behind the other. Blocks of dst lie apart, in any order and with gaps, which are not written; so
 * do those of src that are reduced. The arrays are read before the call returns. Calls with the
 * same arrays as before allocate nothing; a program keeps a copy of them. "In place" as the even
 * forms, with displs[rank] for rank * count; a src and dst that do not lie so must not overlap from
 * the first element to the end of the last block. */

/** Every rank gets all ranks' blocks, of counts[r] elements from rank r.
 *  @param src  [counts[rank]]; @param dst up to the end of the last block; in place if
 *  src == dst + displs[rank].
 *  @param counts  the same on every rank: others are RING_ERR_MISMATCH. @param displs  of this
 *  rank's dst alone.
 *  Cost: as ring_all_gather(), where the longest block counts. */
ring_status ring_all_gather_v(const void *src, void *dst, const size_t *counts,
                              const size_t *displs, ring_dtype dtype, ring_comm *comm,
                              const ring_call *call);

/** Rank r gets block r of the reduction, counts[r] elements.
 *  @param src  up to the end of the last block; @param dst [counts[rank]]; in place if
 *  dst == src + displs[rank].
 *  @param counts  the same on every rank: others are RING_ERR_MISMATCH. @param displs  of this
 *  rank's src alone.
 *  Cost: as ring_reduce_scatter(), where the longest block counts. */
ring_status ring_reduce_scatter_v(const void *src, const size_t *counts, const size_t *displs,
                                  void *dst, ring_dtype dtype, ring_op op, ring_comm *comm,
                                  const ring_call *call);

/** Rank r gets block r of every rank's src.
 *  @param src, dst  up to the end of the last block, without overlap: never in place. Blocks of
 *  src may overlap each other.
 *  @param src_counts  to each rank; @param dst_counts from each rank: as many as it gives, else
 *  RING_ERR_MISMATCH with both numbers.
 *  Cost: n-1 transfers straight to each rank, of empty blocks too; a connection for each pair. */
ring_status ring_all_to_all_v(const void *src, const size_t *src_counts, const size_t *src_displs,
                              void *dst, const size_t *dst_counts, const size_t *dst_displs,
                              ring_dtype dtype, ring_comm *comm, const ring_call *call);

/** The root gets all ranks' blocks.
 *  @param src  [count]; @param count  what this rank gives: counts[rank] of the root's, else
 *  RING_ERR_MISMATCH with both numbers. @param dst up to the end of the last block, written on the
 *  root only; in place if src == dst + displs[rank] on the root.
 *  @param counts, displs  read on the root only, with dst (all may be NULL elsewhere).
 *  Cost: n-1 transfers into the root, straight from each rank. */
ring_status ring_gather_v(const void *src, size_t count, void *dst, const size_t *counts,
                          const size_t *displs, ring_dtype dtype, int root, ring_comm *comm,
                          const ring_call *call);

/** Rank r gets block r of the root's src.
 *  @param src  up to the end of the last block; its blocks may overlap each other.
 *  @param counts, displs  read on the root only, with src (all may be NULL elsewhere).
 *  @param dst  [count]; @param count  what this rank gets: counts[rank] of the root's, else
 *  RING_ERR_MISMATCH with both numbers. In place if dst == src + displs[rank] on the root.
 *  Cost: n-1 transfers out of the root, straight to each rank. */
ring_status ring_scatter_v(const void *src, const size_t *counts, const size_t *displs, void *dst,
                           size_t count, ring_dtype dtype, int root, ring_comm *comm,
                           const ring_call *call);

/* Lists: v-forms whose blocks are buffers of their own, at any addresses: `srcs` or `dsts` are
 * [ranks] addresses, one for each rank's block, and `counts` their [ranks] elements. An empty block
 * may be NULL. Output overlaps nothing; blocks of srcs that are not reduced may overlap
 * each other. Other memory may lie between blocks, and is not touched. "In place": the own block of
 * the list is the other buffer. Arrays are read before the call returns. Other addresses cost
 * nothing: a program is kept for the counts alone, and serves the v-form without displacements as
 * well. Ranks need not agree on which of the two they call, and messages name the v-form. A side's
 * blocks lie all in memory of one accelerator, or none does. Over links that reach memory, all
 * blocks of a side lie in regions, or are carried. Cost: that of the v-form, and a sort of the
 * addresses. */

/** Every rank gets all ranks' blocks, each at its own address.
 *  @param src  [counts[rank]]; @param dsts  block r has counts[r] elements; in place if
 *  src == dsts[rank]. @param counts  the same on every rank: others are RING_ERR_MISMATCH. */
ring_status ring_all_gather_list(const void *src, void *const *dsts, const size_t *counts,
                                 ring_dtype dtype, ring_comm *comm, const ring_call *call);

/** Rank r gets the reduction of all ranks' srcs[r].
 *  @param srcs  block r has counts[r] elements; they lie apart; @param dst [counts[rank]]; in place
 *  if dst == srcs[rank]. @param counts  the same on every rank: others are RING_ERR_MISMATCH. */
ring_status ring_reduce_scatter_list(const void *const *srcs, const size_t *counts, void *dst,
                                     ring_dtype dtype, ring_op op, ring_comm *comm,
                                     const ring_call *call);

/** Rank r gets every rank's srcs[r], that of rank s at dsts[s]. Never in place.
 *  @param src_counts  to each rank; @param dst_counts from each rank: as many as it gives, else
 *  RING_ERR_MISMATCH with both numbers. */
ring_status ring_all_to_all_list(const void *const *srcs, const size_t *src_counts,
                                 void *const *dsts, const size_t *dst_counts, ring_dtype dtype,
                                 ring_comm *comm, const ring_call *call);

/** The root gets all ranks' blocks, each at its own address.
 *  @param src  [count]; @param count  what this rank gives: counts[rank] of the root's, else
 *  RING_ERR_MISMATCH with both numbers. In place if src == dsts[rank] on the root.
 *  @param dsts, counts  read on the root only (may be NULL elsewhere). */
ring_status ring_gather_list(const void *src, size_t count, void *const *dsts, const size_t *counts,
                             ring_dtype dtype, int root, ring_comm *comm, const ring_call *call);

/** Rank r gets srcs[r] of the root.
 *  @param srcs, counts  read on the root only (may be NULL elsewhere). @param dst  [count];
 *  @param count  what this rank gets: counts[rank] of the root's, else RING_ERR_MISMATCH with both
 *  numbers. In place if dst == srcs[rank] on the root. */
ring_status ring_scatter_list(const void *const *srcs, const size_t *counts, void *dst,
                              size_t count, ring_dtype dtype, int root, ring_comm *comm,
                              const ring_call *call);

/** Returns when every rank has called it. */
ring_status ring_barrier(ring_comm *comm, const ring_call *call);

/** A barrier that lists missing ranks, and ends no communicator. Ranks that wait in it are in one
 *  round: when all have called it returns RING_OK on each; when the earliest of their times is over
 *  it returns RING_IN_PROGRESS on each, with the same list, and the communicator lives on. A rank
 *  that calls later is in the next round, with the ranks that call again. It takes no place in the
 * order of calls, those under way go on, and threads of a rank that call it at once count as one.
 * The decision is that of the lowest rank of the start that is there: while that one is stopped, it
 *  comes late, at most RING_PEER_TIMEOUT and 1 s after the time, before it is taken for lost.
 *  @param seconds  to wait at most; 0: the ranks that wait now.
 *  @param[out] missing  [ring_comm_size()] ranks that had not called, in order; may be NULL.
 *  @param[out] count    of those; 0 unless RING_IN_PROGRESS; may be NULL.
 *  @return RING_OK, RING_IN_PROGRESS; RING_ERR_ARGUMENT, _USAGE, _MEMORY, _UNSUPPORTED (a start of
 *          more than 3648 ranks), which end nothing; or what ended the communicator.
 *  Cost: a message of 528 bytes of each rank to all ranks of the start, on the control connections.
 */
ring_status ring_barrier_probe(ring_comm *comm, double seconds, int *missing, int *count);

/** Sends [count] elements to @p peer / receives them from it. Matched in call order for each pair;
 *  count and dtype must be equal. An exchange of more than 128 KiB needs ring_call.work on one
 *  side, or a group. A rank that is its own @p peer copies, once both calls are there: so one of
 *  them needs ring_call.work, or both a group, whatever the count, or the blocking one ends with
 *  RING_ERR_TIMEOUT. src == dst is allowed, any other overlap an error of the caller; a call to
 *  itself that is refused takes no place in the order.
 *
 *  Tagged (ring_call.tagged), a send and a recv meet by communicator, peer and tag, and such calls
 *  are a class of their own: they never meet untagged ones, not with tag 0 either. Those of a pair
 *  and tag meet in call order, those of other tags in any order. A recv may name RING_ANY_SOURCE:
 *  it gets the message that came first of those that match, from each sender in the order in which
 *  it sent them, and *envelope tells whose it is. count and dtype must be equal, else the
 *  communicator ends with RING_ERR_MISMATCH and both calls. A tagged call that is refused is not
 *  made: peers do not learn of it, and a recv that waits for it ends at its deadline.
 *  A message of up to 128 KiB is sent ahead of its receiver and kept there, without fail while no
 *  more than 128 KiB from this rank to that one, 192 bytes for each message counted in, have not
 *  been received, and at most while these are 512 KiB. Those beyond that, longer ones, and those
 *  from memory of an accelerator wait for a recv that matches, as does a send to this rank itself:
 *  where both ends send first, such sends need ring_call.work, or a group.
 *  Messages that are not received are dropped with the communicator.
 *  Cost: up to 128 KiB one transfer, and a copy more if its recv comes late; else one more each way
 *  ahead of what untagged calls take. Over one channel, whatever RING_CHANNELS; pairs that use tags
 *  have one connection more for them, and another for long messages. */
ring_status ring_send(const void *src, size_t count, ring_dtype dtype, int peer, ring_comm *comm,
                      const ring_call *call);
ring_status ring_recv(void *dst, size_t count, ring_dtype dtype, int peer, ring_comm *comm,
                      const ring_call *call);

/* ---- Groups ----------------------------------------------------------------------
 * Calls of a thread between ring_group_start() and the ring_group_end() that matches it start
 * together at that end, in the order in which they were made, on one or more communicators. So many
 * sends and receives of any length may be made without handles: all pairs may exchange, in an
 * order of pairs that may differ from rank to rank (that of one pair may not, nor that of
 * collectives of one communicator). One thread may so call for several ranks of its process. */

/** Opens a group, or one more level of the open one; each needs a ring_group_end() in this thread.
 *  The calls below it, up to that end:
 *   - are checked where they are made, and return RING_OK or why they are refused; buffers and
 *     events are borrowed from then on, arrays of counts only until the call returns;
 *   - with ring_call.work: *work is NULL until ring_group_end() puts the handle there; it stays
 *     NULL if the call could not be started;
 *   - are forgotten with a thread that ends, or forks (in the child), before the end.
 *  Waits, tests, probing barriers and what makes communicators are RING_ERR_USAGE in an open group.
 *  Threads do not see each other's groups; on_done is called as if none were open. @return RING_OK,
 * RING_ERR_MEMORY. */
ring_status ring_group_start(void);

/** Ends a level; the outermost one starts the calls and waits for those that have none of
 *  ring_call.work, on_done and stream.
 *  If one of them was refused none is started: the group returns that error, its calls have taken
 *  their places, and ranks that did start theirs get RING_ERR_MISMATCH with the reason (see
 *  Collectives above). An error later ends its communicator, and so all calls on that one; calls
 *  on others go on, and are waited for.
 *  @return RING_OK, also for an inner level; the first error of the calls; RING_ERR_USAGE: no group
 *  is open in this thread, or a communicator of its calls was destroyed.
 *  Cost: an allocation a call. */
ring_status ring_group_end(void);

/* ---- Calls that are made again and again -------------------------------------------
 * With ring_call.prepared a call, of any kind, is checked and kept, and nothing is sent: as MPI's
 * persistent requests. Its buffers are borrowed until ring_prepared_destroy(), arrays of counts
 * only until the call returns. Ranks need not agree on which of their calls are prepared ones. */

/** Makes the call that was prepared, with its arguments: as the call itself, which takes its place
 *  in the order now, but without checks and without a search for its program. As often as wanted,
 *  also before an earlier start has ended where the buffers allow it; also in a group.
 *  @param call  options of this start, without `prepared`; NULL for none.
 *  @return as the call; RING_ERR_USAGE: its communicator was destroyed, or in a forked child. */
ring_status ring_prepared_start(ring_prepared *prepared, const ring_call *call);

/** Gives it back; what was started goes on. Before or after its communicator. NULL is allowed. */
void ring_prepared_destroy(ring_prepared *prepared);

/* ---- Gradient buckets -------------------------------------------------------------
 * A flat gradient buffer is cut into buckets that are reduced while the caller still
 * computes. Parameters are marked ready in any order; buckets start in one fixed order
 * (from the last parameter to the first, as backward produces them) on every rank. */

typedef struct ring_buckets ring_buckets;

/** @param grads   flat buffer of all gradients, best from ring_mem_alloc(); borrowed until
 *                 ring_buckets_destroy().
 *  @param counts  [params] elements of each parameter, in buffer order, without gaps; at most
 *                 PTRDIFF_MAX bytes in all.
 *  @param bucket_bytes  a bucket is closed when it has at least this many; 0: 1 MiB.
 *  @return RING_OK, RING_ERR_ARGUMENT, RING_ERR_MEMORY. */
ring_status ring_buckets_create(ring_buckets **buckets, void *grads, const size_t *counts,
                                size_t params, ring_dtype dtype, ring_op op, size_t bucket_bytes,
                                ring_comm *comm);
/** Waits for what still runs and frees; before its communicator is destroyed, and in no open group,
 *  where nothing is waited for. */
void ring_buckets_destroy(ring_buckets *buckets);

/** Parameter @p index has its final gradient: starts the buckets that became full and
 *  advances the running ones. Each parameter once between two ring_buckets_wait(). */
ring_status ring_buckets_ready(ring_buckets *buckets, size_t index);

/** Waits until all buckets are reduced; an error if a parameter was never ready. */
ring_status ring_buckets_wait(ring_buckets *buckets);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
