/* SPDX-License-Identifier: Apache-2.0
 *
 * libring provides collective communication for training on many CPUs and GPUs. A program joins a
 * communicator and makes the same calls on each of its ranks:
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
 *  - No call blocks forever: each has a deadline (RING_TIMEOUT, or ring_call.timeout), unless it is
 *    set to none. Even then a call ends when a rank that it needs was lost.
 *  - Ranks call the collectives of a communicator in the same order with the same arguments. If
 *    calls differ, every rank gets an error that names both calls.
 *  - The library borrows buffers from the start of a call until the call completes. Until then the
 *    caller must not change them, nor read outputs.
 *  - Several threads may use a communicator, each for one call at a time.
 *  - After an error, outputs are unspecified and the communicator has ended: all later calls
 *    return the first error, and ring_last_error() reports its cause and place. Peers may access
 *    the buffers of failed calls until they have detected the error, too, which takes at most
 *    seconds. Reuse the buffers only after ring_comm_destroy() on all ranks.
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

/** The list of all results: name, value and text. The values are stable. */
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
        RING_STATUS_LAST = RING_ERR_INTERNAL /* C89 and C++98 allow no trailing comma */
} ring_status;

/** @return the text of @p status, a static string; never NULL. */
const char *ring_status_string(ring_status status);

/** @return RING_VERSION_CODE of the loaded library, e.g. 200 for 0.2.0. */
int ring_version(void);

/* ---- Types ------------------------------------------------------------------- */

/** Element types. Floats of 16 and 8 bits are combined in float32 at every hop and rounded once, to
 *  nearest even. The 8-bit floats are those of OCP: e4m3fn has no infinities, and a value that is
 *  too large for a type becomes its largest finite number (448 or 57344), as do infinities of e5m2.
 *  Other types can be passed as one of these. Pass a bool of one byte as RING_UINT8; its sum and
 *  maximum are RING_LOR, its product and minimum RING_LAND, and its exclusive or is RING_LXOR. Pass
 *  a complex number as two floats. RING_SUM, RING_AVG and RING_PREMUL_SUM then work on its parts;
 *  PROD, MIN and MAX are not possible. Elements that are only moved, and not reduced, can be passed
 *  as RING_UINT8, with their number of bytes as count. */
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

/** Reductions. Integers wrap around; RING_AVG of integers divides the sum and rounds towards zero.
 *  MIN and MAX return NaN if any input is NaN. RING_BAND to RING_LXOR are only for integers: the
 *  B operations combine bits, and the L operations treat each element as a bool, with the result 0
 *  or 1. RING_PREMUL_SUM is only for floats: each rank's elements are multiplied by its own factor
 *  (ring_call.scale) and then added as by RING_SUM. The factor is rounded to float32 (to float64
 *  for RING_FLOAT64), and each product to the element type. It costs one more pass over src. If
 *  this rank has no dst as long as src, the communicator also keeps memory as long as src. */
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

/** @return the bytes of one element; 0 for an unknown type. */
size_t ring_dtype_size(ring_dtype dtype);

/** @return the name ("float32", "sum"), or "?" for an unknown value; static. */
const char *ring_dtype_name(ring_dtype dtype);
const char *ring_op_name(ring_op op);

/** @return 1 if calls accept the operation for the type; 0 if they refuse it. */
int ring_op_serves(ring_op op, ring_dtype dtype);

/* ---- Communicators ----------------------------------------------------------- */

typedef struct ring_comm ring_comm;
typedef struct ring_work ring_work;

#define RING_UNIQUE_ID_BYTES 128
/** The address of rank 0, or of the process that made the id, and the random key of one
 *  communicator. Any process that has it may join, so pass it to the other ranks over a private
 *  channel (MPI, a store, a file of mode 0600). */
typedef struct ring_unique_id {
    unsigned char bytes[RING_UNIQUE_ID_BYTES];
} ring_unique_id;

/** Creates an id and reserves a port for it, on which rank 0 listens while ranks join.
 *  The process of rank 0 must call this, unless ring_config.any_process is 1. The port belongs to
 *  one address of this host: RING_ADDR if it is set, else the address of the first interface that
 *  RING_SOCKET_IFNAME allows, else the address of the first interface that is neither loopback nor
 *  a bridge, else 127.0.0.1. Processes without the random key in the id cannot join.
 *  @param[out] id  filled on success. An id can be used for one communicator only.
 *  @return RING_OK, RING_ERR_SYSTEM, RING_ERR_CONFIG. */
ring_status ring_get_unique_id(ring_unique_id *id);

/** Joins the communicator @p id as @p rank of @p size. Collective: returns when all ranks have
 *  joined, or after RING_INIT_TIMEOUT (unless that has the value none) with an error that lists the
 *  missing ranks.
 *  Ranks may be processes, or threads of one process. A failure is also printed as one line on
 *  standard error, because there is no communicator to ask for the reason.
 *  @param[out] comm  free it with ring_comm_destroy(); NULL on failure.
 *  @return RING_OK, RING_ERR_ARGUMENT, RING_ERR_CONFIG, RING_ERR_AUTH, RING_ERR_TIMEOUT,
 *          RING_ERR_PEER, RING_ERR_MEMORY, RING_ERR_SYSTEM; RING_ERR_USAGE at rank 0 if the
 *          id is another process's, or was used already. */
ring_status ring_comm_init(ring_comm **comm, int size, const ring_unique_id *id, int rank);

/** Options of a new communicator; pass NULL to use only the environment. Start from
 *  RING_CONFIG_INIT; members beyond `size` are treated as zero. */
typedef struct ring_config {
    size_t size; /**< sizeof(ring_config) */
    /** Settings that override the environment: "RING_ALGO=ring", "RING_TRANSPORT=shm", …, then
     *  NULL (`ringinfo env` lists all settings). NULL: none. If all ranks must agree on a setting,
     *  the value of rank 0 is used. */
    const char *const *settings;
    /** 1: return at once, so that one thread can join as several ranks or join several
     *  communicators. ring_comm_status() returns RING_IN_PROGRESS until the start has ended. The
     *  first call that needs the communicator waits for the start, and returns the error if the
     *  start has failed. ring_comm_abort() and ring_comm_destroy() end a start in progress. */
    int nonblocking;
    /** 1: do not print a failure, because the caller shows ring_last_error(NULL). */
    int quiet;
    /** 1, for ring_get_unique_id_config(): rank 0 may join in another process than the one that
     *  makes the id. */
    int any_process;
} ring_config;

#define RING_CONFIG_INIT \
    { \
        sizeof(ring_config), NULL, 0, 0, 0 \
    }

/** ring_get_unique_id() with options. @param config  NULL: none. Of its settings only RING_ADDR,
 *  RING_INIT_TIMEOUT (after which the port is released; none: never), RING_SOCKET_IFNAME and
 *  RING_DEBUG have an effect; `nonblocking` and `quiet` have none.
 *   - any_process: any process may make the id, also one that is no rank. It listens on the port
 *     at once, and must live until all ranks have joined. The ranks may come in any order. If rank
 *     0 joins in another process, it listens on a port of its own, at the address that RING_ADDR
 *     or RING_SOCKET_IFNAME chooses there, else at the one from which it reaches the maker, which
 *     sends the other ranks there. If the maker has ended, ranks that still need it fail with
 *     RING_ERR_PEER after 5 s. Costs a thread, unless the process has a communicator, and a socket
 *     for each rank that waits for rank 0, until all have joined or the port is released.
 *  @return the same, and RING_ERR_ARGUMENT, RING_ERR_MEMORY. */
ring_status ring_get_unique_id_config(ring_unique_id *id, const ring_config *config);

/** ring_comm_init() with options. @return the same, and RING_ERR_CONFIG if a setting is wrong. */
ring_status ring_comm_init_config(ring_comm **comm, int size, const ring_unique_id *id, int rank,
                                  const ring_config *config);

/** ring_comm_init() with rank and size from the environment: RING_*, torchrun, PMIx, Open MPI, PMI
 *  or Slurm. Without any of them it creates a communicator of one rank. A failure is also printed.
 */
ring_status ring_comm_init_env(ring_comm **comm);

/** Ranks that pass this as their colour do not belong to any communicator of a split. */
#define RING_SPLIT_NONE (-1)

/** Creates a smaller communicator for each colour, of all ranks that pass that colour. Collective
 *  over @p parent, in the order of its other calls. It opens no socket and starts no thread;
 *  connections are made when a pair of ranks first needs them. The communicators fail
 *  independently: a lost rank ends only the communicators to which it belongs.
 *  @param colour    0 or more; RING_SPLIT_NONE: this rank gets no communicator.
 *  @param key       orders the ranks of a colour; equal keys are ordered by rank in the parent.
 *  @param[out] out  free it with ring_comm_destroy(), before or after the parent; NULL for
 *                   RING_SPLIT_NONE and on failure.
 *  @return the results of ring_all_gather(); RING_ERR_MEMORY on all ranks if one of them lacks
 *          memory, in which case the parent stays usable.
 *  Cost: an all_gather of 16 bytes per rank and an all_reduce of 4 bytes. */
ring_status ring_comm_split(ring_comm *parent, int colour, int key, ring_comm **out);

/** ring_comm_split() with options. Ranks may pass different options, and some of them may call
 *  ring_comm_split().
 *  @param config  NULL: none.
 *   - nonblocking: returns at once. The split has its place in the order of the parent's calls, and
 *     the next calls on the parent may be made. Until it has ended, ring_comm_status(*out) returns
 *     RING_IN_PROGRESS, and ring_comm_rank() and ring_comm_size() return -1; all other calls on
 *     *out wait for it, including ring_comm_destroy(), except ring_comm_abort(), which aborts the
 *     parent. Aborting or destroying the parent aborts the split, like other calls. If it fails,
 *     *out has failed with the reason. With RING_SPLIT_NONE, *out is NULL, and this rank takes part
 *     in the background. One thread can split for several ranks, one after the other.
 *   - settings: only RING_EXIT, RING_NVTX and RING_PROGRESS; the others are those of the parent.
 *   - quiet has no effect, because failures are not printed.
 *  @return the results of ring_comm_split(), of a nonblocking one only those before its start;
 *          RING_ERR_CONFIG if a setting is wrong or cannot differ from the parent's, in which case
 *          the other ranks get RING_ERR_MISMATCH with the reason. */
ring_status ring_comm_split_config(ring_comm *parent, int colour, int key,
                                   const ring_config *config, ring_comm **out);

/** Creates a second communicator of the same ranks, for example for a library or another thread.
 *  Calls on it neither wait for calls on the parent nor match them. Same as ring_comm_split() with
 *  one colour. */
ring_status ring_comm_dup(ring_comm *parent, ring_comm **out);

/** Creates a communicator of some ranks of @p parent. Only these ranks call it, as with
 *  MPI_Comm_create_group; the other ranks do nothing. It opens no socket and starts no thread.
 *  Calls on the parent continue, and the order of this call among them does not matter. Any thread
 *  may call it.
 *  @param ranks  [count] ranks of the parent, in the order of their new ranks. All of these ranks
 *                pass the same list, which includes this rank.
 *  @param tag    0 or more; distinguishes calls with the same list that may be in flight at the
 *                same time, for example in several threads. Calls with different lists never match.
 *                Reuse tags, because each pair of list and tag uses memory of the parent.
 *  @param[out] out  free it with ring_comm_destroy(), before or after the parent; NULL on failure.
 *  @return RING_OK, or
 *          RING_ERR_TIMEOUT if not all ranks of the list called within RING_TIMEOUT after the first
 *          one. The error lists the missing ranks, and says if they called with another list. A
 *          rank that calls later takes part in the next attempt. The parent stays usable;
 *          RING_ERR_MEMORY on all ranks if one of them lacks memory. The parent stays usable;
 *          RING_ERR_USAGE if another thread of this rank waits with the same list and tag;
 *          RING_ERR_PEER if a rank was lost, or another error that ended the parent.
 *  Cost: two short messages from each member to all ranks of the start, and two answers. */
ring_status ring_comm_create(ring_comm *parent, const int *ranks, int count, int tag,
                             ring_comm **out);

/** As ring_comm_create(), for all ranks of @p comm except @p ranks. Only the remaining ranks call
 *  it, and they keep their order. It is comparable to ncclCommShrink() of a communicator that has
 *  not failed. @p comm and its calls continue, and @p comm must still be destroyed.
 *  @param ranks  [count] the ranks to leave out, in any order; with count 0 all ranks remain. */
ring_status ring_comm_exclude(ring_comm *comm, const int *ranks, int count, ring_comm **out);

/** As ring_comm_exclude(), but first ends @p comm on all ranks, with RING_ERR_ABORTED unless it has
 *  failed already. It is comparable to ncclCommShrink() with NCCL_SHRINK_ABORT. The ranks that are
 *  left out may be in calls, hang, or have ended, and they are not waited for. If one of them is
 *  stopped or cut off, messages of the others may need up to RING_PEER_TIMEOUT to get around it.
 *
 *  On success the remaining ranks no longer access each other's buffers of calls on @p comm. If a
 *  rank that is left out accesses outputs of such a call in place (memory of ring_mem_alloc(),
 *  registered memory, or GPUs of threads) and the call had not ended, it may write them until it
 *  learns of the end: within seconds, but one that is stopped when it continues. Do not reuse or
 *  free such outputs before that, or before that rank has ended. All other buffers may be reused.
 *  @return RING_OK, or an error, after which the remaining ranks may call again, with the same or
 *          more ranks to leave out:
 *          RING_ERR_TIMEOUT if not all of them called within RING_TIMEOUT after the first one;
 *          RING_ERR_PEER if one of them was lost, or has destroyed @p comm;
 *          RING_ERR_MEMORY on all of them if one of them lacks memory;
 *          RING_ERR_USAGE if another thread of this rank waits with the same list.
 *          After RING_ERR_ARGUMENT @p comm continues.
 *  Cost: that of ring_comm_abort() and ring_comm_create(). */
ring_status ring_comm_exclude_abort(ring_comm *comm, const int *ranks, int count, ring_comm **out);

/** Creates a communicator of the survivors of a failed communicator. Collective over the survivors:
 *  waits until all of them have called it, for at most RING_TIMEOUT. A rank that has not called by
 *  then is left out. The survivors keep their order. When the call returns, all calls of the
 *  survivors on the failed communicator have ended, and buffers may be reused. @p broken must still
 *  be destroyed.
 *  @param[out] out  the new communicator; NULL on failure.
 *  @return RING_OK, RING_ERR_TIMEOUT, RING_ERR_MEMORY, or
 *          RING_ERR_USAGE if @p broken has not failed;
 *          RING_ERR_PEER if this rank was left out, or a rank is silent and at most half of the
 *          ranks have called, or a silent rank on the host of a survivor is only stopped and could
 *          still write to shared memory (kill it and call again). */
ring_status ring_comm_shrink(ring_comm *broken, ring_comm **out);

/** Waits until all calls on @p comm that this rank has started before have ended: calls of any
 *  thread, on streams (even if the stream has not reached the call), prepared calls, buckets,
 *  tagged messages, and calls without a handle. Their on_done functions have returned, too. It
 *  waits neither for other ranks nor for later calls, nor for replays of graphs. The communicator
 *  stays usable, and handles stay valid. The calls have their own deadlines. Any thread may call
 *  it.
 *  @param seconds  the longest wait; 0: only advances and checks the calls, without blocking;
 *                  INFINITY (or any number from 1e9): until the calls have ended.
 *  @return RING_OK if all of these calls have ended, or there are none, as during a nonblocking
 *          start;
 *          RING_IN_PROGRESS after @p seconds, or if the events for which all remaining calls wait
 *          were not set within the calls' timeouts, in which case the calls continue;
 *          RING_ERR_ARGUMENT; RING_ERR_USAGE if a group is open in this thread, or in an on_done
 *          function; or the error that ended the communicator. */
ring_status ring_comm_flush(ring_comm *comm, double seconds);

/** Leaves the communicator and frees it. NULL is allowed. Calls in flight are aborted, or end with
 *  the failure that ended the communicator earlier. Their handles may still be waited for, and
 *  return that error. A start in progress is aborted, as by ring_comm_abort(); a nonblocking split
 *  in progress is waited for, unless ring_comm_abort() has ended it. Other ranks can finish calls
 *  that need no more data from this rank. A process that exits without calling it counts as a lost
 *  rank, whatever its exit status, unless RING_EXIT=leave is set and none of its calls is in
 *  flight: then it leaves. In a forked child it does nothing, because the communicator belongs to
 *  the parent process; any other call on it returns RING_ERR_USAGE there. */
void ring_comm_destroy(ring_comm *comm);

/** Ends the communicator on all ranks: every waiting call returns RING_ERR_ABORTED. If the
 *  communicator has already failed, it keeps its first error. In both cases this rank's calls have
 *  ended when it returns, and streams that RING_HOLD_STREAMS has stopped continue. Any thread may
 *  call it at any time.
 *  A start in progress (ring_config.nonblocking) fails with that error within a fraction of a
 *  second, on this rank and on the ranks that have joined; the call does not wait for that. A rank
 *  that has not joined yet is not notified: it waits until RING_INIT_TIMEOUT, or until it is
 *  aborted, too. A nonblocking split in progress is one of the parent's calls: it ends within a
 *  fraction of a second, because the call aborts the parent, on all of its ranks.
 *  @param reason  part of the error message on every rank; may be NULL.
 *  @return RING_OK; RING_ERR_ARGUMENT; RING_ERR_USAGE in a forked child; or the error of a start
 *          that has failed. */
ring_status ring_comm_abort(ring_comm *comm, const char *reason);

/** @return RING_OK, or the error that ended the communicator; RING_IN_PROGRESS while a nonblocking
 *  start is in progress. Never blocks. */
ring_status ring_comm_status(const ring_comm *comm);

/** Facts about a communicator, and its counters since its start. Sizes are in bytes. */
typedef struct ring_comm_info {
    size_t size;                 /**< sizeof(ring_comm_info), set by the caller */
    int rank, ranks;             /**< this rank and the number of ranks */
    int local_rank, local_ranks; /**< the same among the ranks of this host */
    int hosts;                   /**< number of hosts */
    char transport[32];          /**< "shm", "tcp", …; "shm+tcp" if links differ; "self" */
    char algorithm[32];          /**< algorithm of the latest collective; "" before the first */
    double predicted_us;         /**< microseconds that the cost model predicts for the latest
                                      collective; 0: none, e.g. if ranks share cores */
    uint64_t bytes_sent;         /**< payload sent to peers, including bytes sent by reference */
    uint64_t bytes_received;
    uint64_t messages_sent; /**< messages of plans; a message may be several frames */
    uint64_t memory;        /**< bytes used by this communicator, without mappings of peers */
    double init_seconds;    /**< time that ring_comm_init() took */
    char launcher[32];      /**< the source of rank and size: "ringrun", "torchrun", … */
    uint64_t lowered;       /**< calls that needed a new program; all others reused the program of
                                 an earlier call */
} ring_comm_info;

/** Fills @p info up to info->size bytes.
 *  @return RING_OK, RING_ERR_ARGUMENT, or RING_ERR_USAGE in a forked child. */
ring_status ring_comm_get_info(const ring_comm *comm, ring_comm_info *info);

/** @return this rank's number / the number of ranks; -1 for NULL. */
int ring_comm_rank(const ring_comm *comm);
int ring_comm_size(const ring_comm *comm);

/** @return the message of the error, with rank, host, call and cause; "" if there was no error. It
 *  is valid until the communicator is destroyed, or until the thread's next failure.
 *  @param comm  NULL: the latest failure of the calling thread. */
const char *ring_last_error(const ring_comm *comm);

/* ---- Memory ------------------------------------------------------------------ */

/** Allocates memory that the ranks of a host read and write in place, without a copy. Any buffer
 *  works with any call; this kind is the fastest. A process can allocate up to twice the machine's
 *  memory in all (at most 64 GiB; less under ulimit -v or -f), and each local peer maps the same
 *  amount of address space. An allocation uses one page more than @p bytes.
 *  A forked child cannot access the memory: an access faults (SIGSEGV). Otherwise the child could
 *  change data that ranks use, or save data that they change at the same time. To write a
 *  checkpoint in a child, for example, copy the data to malloc() memory before fork(). The child
 *  can allocate memory for itself. system(), popen() and posix_spawn() are not affected.
 *  @param[out] ptr   page-aligned, zeroed, not accessible to other users; NULL for @p bytes 0.
 *  @return RING_OK or RING_ERR_MEMORY. Cost: touches every page. */
ring_status ring_mem_alloc(void **ptr, size_t bytes);

/** Frees memory of ring_mem_alloc() that no call in flight uses. NULL is allowed.
 *  @return RING_OK, or RING_ERR_ARGUMENT if it was not allocated in this process. */
ring_status ring_mem_free(void *ptr);

/** Registers any memory as a region that peers may access. This is useful for buffers that are not
 *  from ring_mem_alloc() and are used in many calls. Ranks of one process (loop) read and write a
 *  region in place, and adapters (verbs, ucx) access it directly; shm and tcp still copy it into
 *  messages. Registration never changes results. A buffer benefits if it is within one region.
 *  @param ptr  [bytes] the caller's memory; deregister it before you free it. It must not overlap
 *              another region or memory of ring_mem_alloc().
 *  @return RING_OK; RING_ERR_ARGUMENT: NULL, 0 bytes, or an overlap; RING_ERR_MEMORY: there are
 *          already 16384 regions. Any thread may call it; forked children start without regions. */
ring_status ring_mem_register(void *ptr, size_t bytes);

/** Deregisters a region. @param ptr  the pointer that was passed to ring_mem_register().
 *  @return RING_OK; RING_ERR_ARGUMENT: it is not registered in this process; RING_ERR_USAGE: calls
 *          in flight use it, and it stays registered. */
ring_status ring_mem_deregister(void *ptr);

/* ---- Call options and work handles ---------------------------------------------- */

/** A condition for which calls can wait. Any thread sets it, once. */
typedef struct ring_event ring_event;
/** @param[out] event  free it with ring_event_destroy(). @return RING_OK or RING_ERR_MEMORY. */
ring_status ring_event_create(ring_event **event);
/** Sets the event, so that the calls that wait for it (ring_call.after) start.
 *  @param status  RING_OK, or an error that ends the communicators of the waiting calls.
 *  @return RING_OK; RING_ERR_USAGE if it is already set; RING_ERR_ARGUMENT. */
ring_status ring_event_set(ring_event *event, ring_status status);
/** Releases the caller's reference; calls that wait for the event keep it until they end. NULL is
 *  allowed. */
void ring_event_destroy(ring_event *event);

/** A function that is called once with the result when a call has ended. The thread that finishes
 *  the call runs it, without holding a lock of the library. The function may start calls, but must
 *  not wait or destroy a communicator. It should return within milliseconds, because it may run on
 *  the library's progress thread, which advances all calls for which no thread waits
 *  (RING_PROGRESS). With RING_PROGRESS=none it is called only while a thread of this process is in
 *  a call of libring. */
typedef void (*ring_done)(void *context, ring_status status);

/** Peer of a tagged ring_recv() that accepts messages from any rank, including itself. */
#define RING_ANY_SOURCE (-1)
/** Tag of a tagged ring_recv() that accepts messages with any tag. */
#define RING_ANY_TAG (-1)
/** The sender of a tagged message, and its tag. */
typedef struct ring_envelope {
    int source;
    int tag;
} ring_envelope;

/** As ring_call.timeout: the call has no deadline, as with RING_TIMEOUT=none. It ends when it is
 *  complete, or with the communicator. */
#define RING_TIMEOUT_NONE (-1.0)

/** A call that was prepared with ring_call.prepared. */
typedef struct ring_prepared ring_prepared;
/** Options of one call; pass NULL for none. Start from RING_CALL_INIT. Fields beyond `size` bytes
 *  are treated as zero, so programs keep working when the struct grows. */
typedef struct ring_call {
    size_t size;       /**< sizeof(ring_call) */
    ring_work **work;  /**< not NULL: return at once, and set *work to a handle for ring_wait() */
    void *stream;      /**< not NULL: enqueue the call on this stream of an accelerator, and return
                            at once; see below */
    double timeout;    /**< seconds until RING_ERR_TIMEOUT, from the start of the call, or from the
                            time at which `after` is set and `stream` has reached the call; 0:
                            RING_TIMEOUT; or RING_TIMEOUT_NONE */
    ring_event *after; /**< not NULL: nothing is read, written or sent before this event is set */
    ring_done on_done; /**< not NULL: called when the call has ended. Without `work`, the call also
                            returns at once, and has no handle */
    void *context;     /**< passed to on_done */
    ring_prepared **prepared; /**< not NULL: the call is not made but prepared, see
                                   ring_prepared_start(); apart from the tag, no other option may
                                   be set */
    const double *scale; /**< only for RING_PREMUL_SUM: this rank's factor, which must be finite and
                              may be 0. Read before the call returns. If GPUs run the call, it may
                            be in memory of the GPU, and is read when the GPU reaches the call */
    int tagged;          /**< 1: a send or recv that is matched by `tag`, see ring_send() */
    int tag;             /**< with `tagged`: 0 or more; for a recv also RING_ANY_TAG */
    ring_envelope *envelope; /**< for a tagged recv, may be NULL: receives the sender and the tag of
                                  the message before the call ends with RING_OK */
} ring_call;

#define RING_CALL_INIT \
    { \
        sizeof(ring_call), NULL, NULL, 0.0, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL \
    }

/* Calls on streams (ring_call.stream) work as with NCCL: nothing is read, written or sent before
 * the stream has reached the call, later work on the stream sees the call's result, and no host
 * thread waits. The call ends without its caller; set `work` to get a handle, too. NULL is not a
 * stream; CUDA's default streams are cudaStreamLegacy and cudaStreamPerThread.
 *  - Buffers must be in memory of the stream's accelerator, registered or not, or in host memory if
 *    the accelerator's streams order accesses to that, too. Otherwise the call returns
 *    RING_ERR_UNSUPPORTED, as it does if the stream does not belong to an accelerator. Only some of
 *    the ranks may pass a stream. Where GPUs run calls themselves, a collective has buffers of the
 *    GPU on all ranks or on no rank, otherwise RING_ERR_MISMATCH ends the communicator
 *    (docs/devices.md).
 *  - A call takes its place among the calls of the communicator when it is made, on any stream. If
 *    it waits for a later call on the same stream, both must be in one group: the calls of a group
 *    on one stream share a place there.
 *  - A call without a stream on memory of an accelerator starts after all work that the device's
 *    default stream has at that moment, as a plain copy would. The caller orders work of other
 *    streams that do not synchronize with the default one.
 *  - The deadline counts from the call and includes the time that the stream takes to reach it.
 *  - While the host drives a call on a stream, no thread of the process may block inside CUDA in a
 *    call that waits for that stream, such as cudaFree (docs/devices.md).
 *  - If the stream is being captured into a graph, a call that GPUs run themselves
 *    (docs/devices.md) becomes a part of the graph, and each replay makes it again. It must not
 *    have work, on_done or after. All ranks must replay in the same order. Calls that the host
 * drives return RING_ERR_UNSUPPORTED: a replay could block inside the driver, with its lock held,
 * until the host has driven the call, which needs the driver.
 *  - If the communicator or its accelerator fails, the stream continues and the results are
 *    undefined; ring_comm_status() and later calls report the failure. With RING_HOLD_STREAMS=1 the
 *    stream stays stopped at the call until this rank calls ring_comm_abort(), ring_comm_shrink()
 *    or ring_comm_destroy() for the communicator (docs/devices.md). ring_comm_destroy() does not
 *    wait for the stream.
 *  - With RING_PROGRESS=none a call on a stream needs `work`, and advances only while a thread is
 *    in a call of libring. */

/** Waits until the call has ended, frees the handle and sets *handle to NULL, whatever the result.
 *  The progress thread advances the call while the caller computes (RING_PROGRESS); a waiting
 *  caller advances it itself. The caller spins for a moment, then yields, then sleeps in the
 *  kernel. It also advances calls of the process's other communicators for which no thread waits.
 *  If `after` is not set within RING_TIMEOUT, ring_wait()
 *  returns RING_IN_PROGRESS and the handle stays valid. Several threads may wait for or test one
 *  call at the same time, each with its own copy of the handle. The first thread that gets the
 *  result ends the handle: the threads that already wait get the result, too, and threads that
 *  start to wait later get RING_ERR_USAGE. If threads may start to wait at any time, use
 *  ring_wait_keep().
 *  @param handle  the variable to which ring_call.work pointed; if it contains NULL, returns
 *              RING_OK.
 *  @return the call's result; RING_ERR_USAGE if the handle has already ended. */
ring_status ring_wait(ring_work **handle);

/** As ring_wait(), for at most @p seconds; then it returns RING_IN_PROGRESS and the call continues.
 */
ring_status ring_wait_for(ring_work **handle, double seconds);

/** As ring_wait_for(), without freeing the handle. Any number of threads may wait with it, at the
 *  same time or after the call has ended, and each of them gets the result. When no thread waits
 *  with the handle any more, one ring_wait() or ring_test() must free it. If @p handle is NULL,
 *  returns RING_OK. */
ring_status ring_wait_keep(ring_work *handle, double seconds);

/** Waits for all @p count handles; NULL handles are skipped. @return the first error. */
ring_status ring_wait_all(ring_work **works, size_t count);

/** Waits until one of the calls has ended, and frees its handle.
 *  @param[out] index  the index of that call; @p count if all handles are NULL or no call has
 *                     ended.
 *  @return the result of that call; RING_OK if all handles are NULL; RING_IN_PROGRESS if the events
 *  for which all calls wait were not set within the calls' timeouts, in which case the calls
 *  continue. */
ring_status ring_wait_any(ring_work **works, size_t count, size_t *index);

/** Advances the call without blocking. If it has ended, successfully or not, *done becomes 1, the
 *  handle is freed, *handle becomes NULL and the result is returned. Otherwise it returns RING_OK
 *  and *done is 0. Calls also advance without it, by a thread of the library, unless
 *  RING_PROGRESS=none. */
ring_status ring_test(ring_work **handle, int *done);

/** As ring_test(), for several calls. *done becomes 1 and the handles are freed only if all calls
 *  have ended. @return the first error. */
ring_status ring_test_all(ring_work **works, size_t count, int *done);

/* ---- Collectives ----------------------------------------------------------------
 * S is the number of bytes of the whole vector, n the number of ranks. "In place" means exactly the
 * stated pointer equality; any other overlap of src and dst is an error of the caller.
 * All calls return RING_OK; RING_ERR_ARGUMENT, _USAGE or _UNSUPPORTED before anything was sent; or
 * one of RING_ERR_TIMEOUT, _PEER, _MISMATCH, _ABORTED, _MEMORY, _SYSTEM, _INTERNAL, which end the
 * communicator. A call that is refused because of its arguments still takes its place in the order
 * of calls. If all ranks refuse the call, the communicator continues; otherwise the ranks that
 * accepted it get RING_ERR_MISMATCH with the reason.
 * A call returns when this rank's part is done. Short messages (at most 128 KiB from a call to a
 * peer) are sent without waiting for their receivers. A short broadcast, reduce, gather, scatter,
 * scan, send or v-form of these may therefore return before its peers have called it. If a peer
 * makes a different call, a later call reports the error. Every rank gets the same bits, on every
 * run with the same ranks, count, type and algorithm. Integers wrap around. RING_AVG divides the
 * sum by the number of ranks: for floats by one correctly rounded division (for 16 and 8 bits in
 * float32, rounded once), for integers towards zero. */

/** dst[i] = op over ranks of src[i], on every rank.
 *  @param src, dst  [count] elements; in place if src == dst.
 *  Cost of the ring: 2(n-1) transfers and 2(n-1)/n * S bytes sent per rank
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

/** dst[i] = op over ranks of src[i], on the root only. @param src  [count]; @param dst  [count],
 *  written on the root only (may be NULL elsewhere); in place if src == dst on the root. */
ring_status ring_reduce(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                        int root, ring_comm *comm, const ring_call *call);

/** The root gets all ranks' blocks in rank order.
 *  @param src  [count]; @param dst [ranks * count], written on the root only (may be NULL
 *  elsewhere); in place if src == dst + rank * count on the root.
 *  Cost: n-1 transfers into the root, (n-1)/n * S bytes, directly from each rank. */
ring_status ring_gather(const void *src, void *dst, size_t count, ring_dtype dtype, int root,
                        ring_comm *comm, const ring_call *call);

/** Rank r gets block r of the root's src.
 *  @param src  [ranks * count], read on the root only (may be NULL elsewhere); @param dst [count];
 *  in place if dst == src + rank * count on the root.
 *  Cost: n-1 transfers out of the root, (n-1)/n * S bytes, directly to each rank. */
ring_status ring_scatter(const void *src, void *dst, size_t count, ring_dtype dtype, int root,
                         ring_comm *comm, const ring_call *call);

/** Rank r gets block r of every rank's src, in rank order.
 *  @param src, dst  [ranks * count], without overlap: never in place.
 *  Cost: n-1 transfers, (n-1) * count elements sent per rank, a connection for each pair. */
ring_status ring_all_to_all(const void *src, void *dst, size_t count, ring_dtype dtype,
                            ring_comm *comm, const ring_call *call);

/** dst[i] on rank r = op over ranks 0 to r of src[i], combined in the order of ranks.
 *  @param src, dst  [count] elements; in place if src == dst. @param op  not RING_AVG.
 *  Cost: every rank but the last sends count elements of the accumulator's type. The last result is
 *  ready after a pipeline of n-1 transfers; short calls of up to 64 ranks take one exchange. */
ring_status ring_scan(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                      ring_comm *comm, const ring_call *call);

/** As ring_scan(), over ranks 0 to r - 1. On rank 0 dst is not written and may be NULL. */
ring_status ring_exscan(const void *src, void *dst, size_t count, ring_dtype dtype, ring_op op,
                        ring_comm *comm, const ring_call *call);

/* In the v-forms, each block has its own length. `counts` has [ranks] entries, the elements of each
 * rank's block, which may be 0. `displs` has [ranks] entries, the elements from the start of the
 * buffer to each block; NULL: the blocks are contiguous. Blocks of dst, and blocks of src that are
 * reduced, must not overlap. They may be in any order and have gaps, which are not written. The
 * arrays are read before the call returns. Calls with the same arrays as an earlier call allocate
 * nothing, because a program keeps a copy of the arrays. "In place" is defined as for the even
 * forms, with displs[rank] instead of rank * count; otherwise src and dst must not overlap between
 * their first elements and the ends of their last blocks. */

/** Every rank gets all ranks' blocks, of counts[r] elements from rank r.
 *  @param src  [counts[rank]]; @param dst up to the end of the last block; in place if
 *  src == dst + displs[rank].
 *  @param counts  the same on every rank, else RING_ERR_MISMATCH. @param displs  applies to this
 *  rank's dst only.
 *  Cost: that of ring_all_gather() with the longest block. */
ring_status ring_all_gather_v(const void *src, void *dst, const size_t *counts,
                              const size_t *displs, ring_dtype dtype, ring_comm *comm,
                              const ring_call *call);

/** Rank r gets block r of the reduction, counts[r] elements.
 *  @param src  up to the end of the last block; @param dst [counts[rank]]; in place if
 *  dst == src + displs[rank].
 *  @param counts  the same on every rank, else RING_ERR_MISMATCH. @param displs  applies to this
 *  rank's src only.
 *  Cost: that of ring_reduce_scatter() with the longest block. */
ring_status ring_reduce_scatter_v(const void *src, const size_t *counts, const size_t *displs,
                                  void *dst, ring_dtype dtype, ring_op op, ring_comm *comm,
                                  const ring_call *call);

/** Rank r gets block r of every rank's src.
 *  @param src, dst  up to the end of the last block, without overlap: never in place. Blocks of
 *  src may overlap each other.
 *  @param src_counts  elements to each rank; @param dst_counts  elements from each rank, which must
 *  equal the number that this rank sends, else RING_ERR_MISMATCH with both numbers.
 *  Cost: n-1 transfers directly to each rank, also for empty blocks; a connection for each pair. */
ring_status ring_all_to_all_v(const void *src, const size_t *src_counts, const size_t *src_displs,
                              void *dst, const size_t *dst_counts, const size_t *dst_displs,
                              ring_dtype dtype, ring_comm *comm, const ring_call *call);

/** The root gets all ranks' blocks.
 *  @param src  [count]; @param count  elements that this rank sends, which must equal counts[rank]
 *  on the root, else RING_ERR_MISMATCH with both numbers. @param dst up to the end of the last
 *  block, written on the root only; in place if src == dst + displs[rank] on the root.
 *  @param counts, displs  read on the root only, like dst (all may be NULL elsewhere).
 *  Cost: n-1 transfers into the root, directly from each rank. */
ring_status ring_gather_v(const void *src, size_t count, void *dst, const size_t *counts,
                          const size_t *displs, ring_dtype dtype, int root, ring_comm *comm,
                          const ring_call *call);

/** Rank r gets block r of the root's src.
 *  @param src  up to the end of the last block; its blocks may overlap each other.
 *  @param counts, displs  read on the root only, like src (all may be NULL elsewhere).
 *  @param dst  [count]; @param count  elements that this rank gets, which must equal counts[rank]
 *  on the root, else RING_ERR_MISMATCH with both numbers. In place if dst == src + displs[rank] on
 *  the root.
 *  Cost: n-1 transfers out of the root, directly to each rank. */
ring_status ring_scatter_v(const void *src, const size_t *counts, const size_t *displs, void *dst,
                           size_t count, ring_dtype dtype, int root, ring_comm *comm,
                           const ring_call *call);

/* The list forms are v-forms in which each block is a separate buffer: `srcs` or `dsts` has [ranks]
 * addresses, one for each rank's block, and `counts` has the [ranks] numbers of their elements. An
 * empty block may be NULL. Output blocks must not overlap any other block; blocks of srcs that are
 * not reduced may overlap each other. Memory between blocks is not accessed. "In place" means that
 * this rank's block of the list is the other buffer. The arrays are read before the call returns.
 * Calls with the counts of an earlier call reuse its program, even with new addresses. Some ranks
 * may call the v-form and others the list form; errors name the v-form. All blocks of a list must
 * be in memory of one accelerator, or all in host memory. Over links that access memory directly, a
 * list is used in place only if all its blocks are in regions; otherwise its blocks are copied into
 * messages. Cost: that of the v-form, and a sort of the addresses. */

/** Every rank gets all ranks' blocks, each at its own address.
 *  @param src  [counts[rank]]; @param dsts  block r has counts[r] elements; in place if
 *  src == dsts[rank]. @param counts  the same on every rank, else RING_ERR_MISMATCH. */
ring_status ring_all_gather_list(const void *src, void *const *dsts, const size_t *counts,
                                 ring_dtype dtype, ring_comm *comm, const ring_call *call);

/** Rank r gets the reduction of all ranks' srcs[r].
 *  @param srcs  block r has counts[r] elements; the blocks must not overlap; @param dst
 *  [counts[rank]]; in place if dst == srcs[rank]. @param counts  the same on every rank, else
 *  RING_ERR_MISMATCH. */
ring_status ring_reduce_scatter_list(const void *const *srcs, const size_t *counts, void *dst,
                                     ring_dtype dtype, ring_op op, ring_comm *comm,
                                     const ring_call *call);

/** Rank r gets every rank's srcs[r]; the block of rank s is written to dsts[s]. Never in place.
 *  @param src_counts  elements to each rank; @param dst_counts  elements from each rank, which must
 *  equal the number that this rank sends, else RING_ERR_MISMATCH with both numbers. */
ring_status ring_all_to_all_list(const void *const *srcs, const size_t *src_counts,
                                 void *const *dsts, const size_t *dst_counts, ring_dtype dtype,
                                 ring_comm *comm, const ring_call *call);

/** The root gets all ranks' blocks, each at its own address.
 *  @param src  [count]; @param count  elements that this rank sends, which must equal counts[rank]
 *  on the root, else RING_ERR_MISMATCH with both numbers. In place if src == dsts[rank] on the
 *  root.
 *  @param dsts, counts  read on the root only (may be NULL elsewhere). */
ring_status ring_gather_list(const void *src, size_t count, void *const *dsts, const size_t *counts,
                             ring_dtype dtype, int root, ring_comm *comm, const ring_call *call);

/** Rank r gets srcs[r] of the root.
 *  @param srcs, counts  read on the root only (may be NULL elsewhere). @param dst  [count];
 *  @param count  elements that this rank gets, which must equal counts[rank] on the root, else
 *  RING_ERR_MISMATCH with both numbers. In place if dst == srcs[rank] on the root. */
ring_status ring_scatter_list(const void *const *srcs, const size_t *counts, void *dst,
                              size_t count, ring_dtype dtype, int root, ring_comm *comm,
                              const ring_call *call);

/** Returns when every rank has called it. */
ring_status ring_barrier(ring_comm *comm, const ring_call *call);

/** A barrier that lists missing ranks and does not end the communicator. If all ranks call it
 *  before the shortest of their waits ends, it returns RING_OK on each rank. Otherwise it returns
 *  RING_IN_PROGRESS on each rank that has called, with the same list of missing ranks, and the
 *  communicator stays usable. A rank that calls later takes part in the next barrier, with the
 *  ranks that call again. The barrier is not part of the order of calls, and calls in flight
 *  continue. Threads of a rank that call it at the same time count as one. The lowest live rank of
 *  the start decides the result. If that rank is stopped, the result is late by at most
 *  RING_PEER_TIMEOUT and 1 s, after which that rank is considered lost.
 *  @param seconds  the longest wait; 0: only ranks that are already waiting count as present.
 *  @param[out] missing  [ring_comm_size()] the ranks that had not called, in order; may be NULL.
 *  @param[out] count    the number of missing ranks; 0 unless RING_IN_PROGRESS; may be NULL.
 *  @return RING_OK, RING_IN_PROGRESS; RING_ERR_ARGUMENT, _USAGE, _MEMORY, _UNSUPPORTED (a start of
 *          more than 3648 ranks), which do not end the communicator; or the error that ended it.
 *  Cost: a message of 528 bytes from each rank to all ranks of the start, on the control
 *  connections. */
ring_status ring_barrier_probe(ring_comm *comm, double seconds, int *missing, int *count);

/** Sends [count] elements to @p peer, or receives them from it. The calls of a pair are matched in
 *  call order; count and dtype must be equal. If two ranks exchange more than 128 KiB with each
 *  other, one of them needs ring_call.work, or a group; if GPUs run the calls (docs/devices.md),
 *  both need a group, for any count.
 *
 *  A rank may be its own @p peer. Its data is copied when both calls have been made, so one of them
 *  needs ring_call.work, or both a group, for any count; otherwise the blocking call ends with
 *  RING_ERR_TIMEOUT. src == dst is allowed; any other overlap is an error of the caller. A call
 *  that is refused takes no place in the order.
 *
 *  Tagged sends and recvs (ring_call.tagged) are matched by communicator, peer and tag, and never
 *  with untagged calls, even if the tag is 0. Calls of the same pair and tag are matched in call
 *  order; calls with different tags are independent. A recv may name RING_ANY_SOURCE. It then gets
 *  the first matching message to arrive (messages of one sender in the order in which they were
 *  sent), and *envelope names the sender. count and dtype must be equal, else the communicator ends
 *  with RING_ERR_MISMATCH and an error that names both calls. A refused tagged call is not reported
 *  to peers: a recv that waits for it ends at its deadline.
 *
 *  A tagged message of up to 128 KiB may be sent before its recv is called; the receiver then
 *  stores it. This always works while the unreceived messages from this rank to @p peer have at
 *  most 128 KiB, counting 192 bytes more for each message, and may work up to 512 KiB. Other sends
 *  wait for a matching recv: those of further or longer messages, from memory of an accelerator,
 *  and to this rank itself. If two ranks both send first, such sends need ring_call.work, or a
 *  group. Messages that are never received are dropped when the communicator ends.
 *  Cost of a tagged call: up to 128 KiB one transfer, and one more copy if the recv is late; above
 *  that, one more short message in each direction than an untagged call. Tagged calls use one
 *  channel, whatever RING_CHANNELS is. Pairs of ranks that use tags have one more connection for
 *  them, and another for long messages. */
ring_status ring_send(const void *src, size_t count, ring_dtype dtype, int peer, ring_comm *comm,
                      const ring_call *call);
ring_status ring_recv(void *dst, size_t count, ring_dtype dtype, int peer, ring_comm *comm,
                      const ring_call *call);

/* ---- Groups ----------------------------------------------------------------------
 * The calls that a thread makes between ring_group_start() and the matching ring_group_end() start
 * together at ring_group_end(), in the order in which they were made, on one or more communicators.
 * In this way, many sends and receives of any length can be made without handles. All ranks must
 * make the calls of one pair, and the collectives of one communicator, in the same order; the order
 * between different pairs may differ. A group also lets one thread make calls for several ranks of
 * its process. */

/** Opens a group, or one more level of the open one; each level needs a ring_group_end() in this
 *  thread, or all levels one ring_group_drop(). The calls in a group
 *   - are checked when they are made, and return RING_OK or the error for which they are refused.
 *     Buffers and events are borrowed from then on, arrays of counts only until the call returns;
 *   - with ring_call.work, set *work to NULL; ring_group_end() sets it to the handle, unless the
 *     call could not be started;
 *   - are dropped if the thread ends before the group does, and in a forked child.
 *  Calls that wait, test or create communicators, and ring_barrier_probe(), return RING_ERR_USAGE
 *  in an open group. A group belongs to its thread; calls made in on_done are not part of it.
 *  @return RING_OK, RING_ERR_MEMORY. */
ring_status ring_group_start(void);

/** Ends a level of a group. The end of the outermost level starts the calls, and waits for those
 *  without ring_call.work, on_done and stream.
 *  If one of the calls was refused, all calls of the group are refused, and the group returns that
 *  error. The calls still take their places in the order, and ranks that have started the matching
 *  calls get RING_ERR_MISMATCH with the reason (see Collectives above). An error after the start
 *  ends the communicator and all calls on it. Calls on other communicators continue, and are waited
 *  for.
 *  @return RING_OK, also for an inner level; the first error of the calls; RING_ERR_USAGE: no group
 *  is open in this thread, or a communicator of its calls was destroyed.
 *  Cost: an allocation per call. */
ring_status ring_group_end(void);

/** Closes all levels of this thread's group and forgets its calls, including refused ones. The
 *  calls are not started, take no place in the order of calls, and release their buffers and
 *  events. Handles stay NULL, and on_done is not called. The communicators stay usable. Ranks that
 *  have made the matching calls wait until this rank makes them again, or their deadlines pass.
 *  @return RING_OK; RING_ERR_USAGE: no group is open in this thread. */
ring_status ring_group_drop(void);

/* ---- Prepared calls ----------------------------------------------------------------
 * With ring_call.prepared, a call of any kind is checked and kept, and nothing is sent, as with
 * MPI's persistent requests. The buffers are borrowed until ring_prepared_destroy(), arrays of
 * counts only until the call returns. Some ranks may prepare a call that others make directly. */

/** Makes a prepared call with its arguments. The call takes its place in the order now. It is not
 *  checked again and needs no search for its program. It may be started any number of times, also
 *  in a group, and even before an earlier start has ended if the buffers allow that.
 *  @param call  options of this start, without `prepared`; NULL for none.
 *  @return the results of the call; RING_ERR_USAGE: its communicator was destroyed, or this is a
 *          forked child. */
ring_status ring_prepared_start(ring_prepared *prepared, const ring_call *call);

/** Frees a prepared call, before or after its communicator; calls that were started continue. NULL
 *  is allowed. */
void ring_prepared_destroy(ring_prepared *prepared);

/* ---- Gradient buckets -------------------------------------------------------------
 * A flat gradient buffer is divided into buckets that are reduced while the caller still computes.
 * Parameters may become ready in any order. Buckets start in the same order on every rank, from the
 * last parameter to the first, because a backward pass computes the gradients in that order. */

typedef struct ring_buckets ring_buckets;

/** Divides a gradient buffer into buckets of consecutive parameters.
 *  @param grads   flat buffer of all gradients, preferably from ring_mem_alloc(); borrowed until
 *                 ring_buckets_destroy().
 *  @param counts  [params] elements of each parameter, in buffer order, without gaps; at most
 *                 PTRDIFF_MAX bytes in all.
 *  @param bucket_bytes  parameters are added to a bucket until it has this many bytes; 0: 1 MiB.
 *  @return RING_OK, RING_ERR_ARGUMENT, RING_ERR_MEMORY. */
ring_status ring_buckets_create(ring_buckets **buckets, void *grads, const size_t *counts,
                                size_t params, ring_dtype dtype, ring_op op, size_t bucket_bytes,
                                ring_comm *comm);
/** Waits for running reductions and frees the buckets. Call it before the communicator is
 *  destroyed, and not in an open group, in which no call can be waited for. */
void ring_buckets_destroy(ring_buckets *buckets);

/** Marks the gradient of parameter @p index as final, starts the buckets whose parameters are all
 *  ready, and advances the running reductions. Call it once for each parameter before
 *  ring_buckets_wait(). */
ring_status ring_buckets_ready(ring_buckets *buckets, size_t index);

/** Waits until all buckets are reduced, and starts a new round, in which no parameter is ready.
 *  @return RING_ERR_USAGE if a parameter was not marked as ready, or the first error of the
 *  reductions. */
ring_status ring_buckets_wait(ring_buckets *buckets);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
