/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu: declares what the files of this double share. The host process and its GPU process share one
 * gpu_state, which both map at the same address. All other data are the host process's.
 *
 *   gpu_process.c   the GPU process: its start and its end, and mapping memory in it
 *   gpu_calls.c     the start of each call, calls that a test lets fail, handles, counters
 *   gpu_census.c    the census of calls
 *   gpu_rules.c     calls that libring must not make while it communicates
 *   gpu_devices.c   devices, contexts, errors
 *   gpu_memory.c    allocations
 *   gpu_pointers.c  attributes of pointers, dma-bufs
 *   gpu_mappings.c  memory that is mapped piece by piece, registered memory of the host
 *   gpu_ipc.c       memory and events of other processes
 *   gpu_streams.c   streams, and the threads that run their ops
 *   gpu_events.c    events
 *   gpu_queues.c    hardware queues, which copies of several streams share
 *   gpu_waits.c     host threads that wait, the driver's lock, the limits of what may be pending
 *   gpu_launches.c  modules, functions, blocks
 *   gpu_sharing.c   devices that several processes share
 *   gpu_copies.c    copies and memsets
 *   gpu_capture.c   captures
 *   gpu_graphs.c    graphs, user objects
 */
#ifndef TEST_DOUBLES_GPU_H
#define TEST_DOUBLES_GPU_H

#include "emulated_kernel.h"
#include "fake_cuda.h"
#include "fake_cuda_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    MOST_DEVICES = 16,
    MOST_STREAMS = 256,
    MOST_EVENTS = 4096,
    MOST_OPS = 8192,
    MOST_QUEUES = 32, /* hardware queues of a device */
    MOST_ALLOCATIONS = 8192,
    MOST_ARGS = 4096,
    MOST_BLOCK_THREADS = 1024,
    MOST_SHARED = 48 << 10, /* bytes of a block, unless a function asks for more */
    MOST_SHARED_OPTIN = 224 << 10,
    ALIGNMENT = 512,
    PAGE_BYTES = 4096
};
#define AREA_BYTES ((size_t)16 << 30)
/** Addresses for the GPU process's own memory, most of it stacks of the threads of blocks. */
#define OWN_BYTES ((size_t)64 << 30)
#define LARGE ((size_t)2 << 20)

#define ROW(name, member, parameters) FAKE_CUDA_API CUresult cu##name parameters;
CUDA_FUNCTIONS(ROW)
CUDA_OPTIONAL(ROW)
TEST_CUDA_FUNCTIONS(ROW)
#undef ROW

/* ---- State ---- */

/** A range of addresses, backed by @c file if there is one. The host process may access the file at
 *  @c window. */
typedef struct area {
    char *start, *window;
    int file;
} area;

typedef enum memory_kind {
    MEMORY_DEVICE,
    MEMORY_PINNED,
    MEMORY_MANAGED,
    MEMORY_STAGING, /* pinned memory of the double itself */
    MEMORY_REGISTERED,
    MEMORY_MAPPED,
    MEMORY_IMPORTED
} memory_kind;

typedef struct allocation {
    uintptr_t start;
    size_t bytes;
    memory_kind kind;
    int device;
    uint64_t id; /* never reused */
    unsigned flags;
    bool pooled, freeing, synchronous;
    int file;        /* the host's descriptor of memory that is in no area with a file; or -1 */
    uint64_t offset; /* of @c start in that file */
    int uses, source;
    uint64_t source_id; /* of imported memory: its id in the process @c source */
} allocation;

typedef enum op_kind {
    OP_COPY,
    OP_SET,
    OP_WRITE_VALUE,
    OP_WAIT_VALUE,
    OP_RECORD,
    OP_WAIT,
    OP_HOST,
    OP_LAUNCH,
    OP_FREE
} op_kind;

/** An op of a stream. The kind determines the meaning of to, from, value and width. */
typedef struct op {
    op_kind kind;
    uint64_t ticket; /* numbers all ops in the order of their calls */
    int next, queued;
    int stream;        /* its slot */
    int next_in_queue; /* of a copy: the next copy of its hardware queue, or -1 */
    bool late;         /* the call returns before this copy, which begins late */
    bool replayed;     /* a graph's */
    uint64_t to, from, value;
    size_t bytes;
    unsigned width, flags;
    CUhostFn function;
    void *data;
    emulated_launch launch;
    bool cooperative;
    unsigned started, ended; /* blocks */
    size_t args_bytes;
    char args[MOST_ARGS] __attribute__((aligned(16))); /* last, since only args_bytes are copied */
} op;

typedef struct gpu_stream {
    bool used, threaded, non_blocking;
    int device;
    int first, last; /* ops; -1: none */
    uint64_t asked, done;
    int queue;     /* index of the hardware queue of its copies */
    int pending;   /* ops that have not ended, except host functions */
    int functions; /* host functions of graph replays that have not ended */
} gpu_stream;

/** A hardware queue: the copies that have not ended, in the order of their calls. */
typedef struct hardware_queue {
    int first, last; /* ops; -1: none */
} hardware_queue;

typedef struct gpu_event {
    bool used;
    int device;
    unsigned flags;
    int stream; /* of the last record, which has ended when that stream has ended that ticket */
    uint64_t ticket, at_ns;
    uint64_t *cell; /* of interprocess events: [0] records appended, [1] records ended */
} gpu_event;

typedef struct device_state {
    int first, last; /* launches that have blocks to start */
    int resident;
    bool polled; /* a thread looks for places that other processes give up */
    hardware_queue queues[2 * MOST_QUEUES]; /* the second half is for streams of high priority */
    int dealt[2];                           /* streams that were given a queue, in each half */
} device_state;

typedef struct map_request {
    int state; /* 0: none, 1: asked, 2: done */
    void *at;
    size_t bytes;
    int pid, file, protection; /* file -1: the addresses are only reserved */
    uint64_t offset;
    int device; /* whose memory it is; -1: the host's */
    int error;
} map_request;

/** A bell wakes the threads that wait for it. */
typedef enum bell { BELL_MAIN, BELL_STREAMS, BELL_BLOCKS, BELL_HOST, BELL_FUNCTIONS, BELLS } bell;

typedef struct gpu_state {
    pthread_mutex_t lock;
    uint32_t bells[BELLS];
    int pid, error; /* error: sticky */
    bool ready;
    map_request map;
    uint64_t tickets, ids;
    op ops[MOST_OPS];
    int free_ops, ops_left; /* the first op of the list of free ones; their number */
    int ops_used;           /* the ops from this one on were never used, and are not in the list */
    int functions_first, functions_last; /* host functions to call */
    gpu_stream streams[MOST_STREAMS]; /* [0] the double's own; [1 + d] device d's legacy stream */
    gpu_event events[MOST_EVENTS];
    device_state devices[MOST_DEVICES];
    allocation allocations[MOST_ALLOCATIONS]; /* ordered by address */
    int allocation_count;
    uint64_t launches_started, launches_done, ops_done;
} gpu_state;

extern gpu_state *gpu;

/** What happens when libring makes a call that it must not make while it communicates. */
typedef enum rule { RULE_NONE, RULE_PRINTS, RULE_ENDS } rule;

/** Whether devices can access each other's memory; PEERS_LIE: calls say so, but kernels fail. */
typedef enum peer_access { PEERS_NONE, PEERS_REACH, PEERS_LIE } peer_access;
/** What importing memory and events of other processes comes to. */
typedef enum ipc_ways { IPC_REFUSED, IPC_WORKS, IPC_FAILS_TO_OPEN } ipc_ways;

typedef struct gpu_settings {
    int devices, blocks, owner; /* owner: the id of the host process */
    peer_access peers;
    ipc_ways ipc;
    uint64_t delay_us, seed;
    double deadline;
    bool late; /* calls return before the copies that they ask for have begun */
    uint64_t late_us;
    int queues;          /* hardware queues of a device; 0: every stream has its own */
    uint64_t most_bytes; /* of an allocation on a device */
    bool strict, limits, alloc_drains, drain_locks, launches_wait;
    rule rule;
    area memory[MOST_DEVICES], pinned, mapped, imported;
    void *own; /* addresses for memory of the GPU process's own */
} gpu_settings;
extern gpu_settings gpu_is; /* set by gpu_start() */

/* ---- Process ---- */

_Noreturn void misuse(const char *what);
/** Starts the GPU process at the first call; any thread may call it. */
void gpu_start(void);
void gpu_lock(void);
void gpu_unlock(void);
void gpu_ring(bell b);
/** Gives up the lock until the bell rings. */
void gpu_await(bell b);
/** The same for some milliseconds at most. */
void gpu_await_briefly(bell b);
double gpu_now(void);
/** Called in the GPU process: ends it, and all devices are lost. */
_Noreturn void gpu_die(int error, const char *why);
/** Maps a file of a process in the GPU process, as the members of @p m say; without a file, only
 *  reserves the addresses. @return false: it failed. */
bool gpu_map(const map_request *m);
void gpu_serve_map(void);
/** With PEERS_LIE, keeps this thread, which runs blocks of @p device, from other devices' memory.
 */
void gpu_forget_peers(int device);
/** Threads of the GPU process. */
void *stream_main(void *slot);
void *block_main(void *device);
/** Thread of the host process. */
void *function_main(void *unused);
extern _Thread_local bool in_host_function;

/* ---- Waits of the host's threads (gpu_waits.c) ---- */

/** A wait of a call, for the message if it lasts too long. */
typedef struct host_wait {
    const char *what; /* "until ..." */
    int stream;       /* -1: no stream */
    double since;
} host_wait;

host_wait host_wait_begin(int stream, const char *what);
/** Gives up the lock until something has ended, for some milliseconds at most. Ends the process if
 *  the GPU process is gone, or if the wait has lasted for FAKE_CUDA_DEADLINE: then a message names
 *  the call, its stream, and the op that each stream is at. */
void host_wait_on(const host_wait *w);
/** The function of the driver API that this thread has called last. */
extern _Thread_local const char *call_name;

/** The lock that the driver holds in some calls while they block. Calls that enqueue wait for it.
 *  It is free for the thread that holds it. These are called under gpu_lock(). */
bool driver_lock_is_free(void);
void driver_lock_take(int stream); /* must be free */
void driver_lock_give(void);       /* nothing if this thread does not hold it */

/** Who appends ops to a stream. */
typedef enum appender {
    APPEND_CALL,
    APPEND_REPLAY, /* of a graph */
    APPEND_OWN     /* the double itself: it waits for no lock and has no limits */
} appender;
/** Waits, under gpu_lock(), until the driver may append these ops; the driver's lock may be held
 *  afterwards, by this thread. */
void append_wait(int slot, const op *const *ops, int count, appender who);

/* ---- Hardware queues (gpu_queues.c), all under gpu_lock() ---- */

void queues_begin(void);
/** The hardware queue of the device's next stream. */
int queue_deal(int device, bool high);
/** Counts an op that was appended; a copy enters its stream's hardware queue. */
void queue_enter(int slot, op *o);
void queue_leave(int slot, const op *o);
/** @return the copy of another stream that holds up this op; NULL: there is none. */
const op *queue_holder(int slot, const op *o);

/* ---- Devices of several processes (gpu_sharing.c), in the GPU process, under gpu_lock() ---- */

bool places_are_shared(void);
/** Takes places for blocks of this process. @return false: there are too few, and none was taken.
 */
bool places_take(int device, unsigned count);
void places_give(int device);

/* ---- Calls ---- */

/** @param caller  the address to which the call returns.
 *  @return the error that ends the call before it has done anything; 0 if there is none. */
CUresult call_enter(const char *function, const void *caller);
#define ENTER() \
    do { \
        const CUresult early = call_enter(__func__, __builtin_return_address(0)); \
        if (early != 0) \
            return early; \
    } while (0)
#define TRY(expression) \
    do { \
        const CUresult tried = (expression); \
        if (tried != 0) \
            return tried; \
    } while (0)

/** @return whether code of libring's is at that address. */
bool call_is_of_library(const void *caller);
void census_count(const char *function, const void *caller);
void rule_check(const char *function, const void *caller);
void rule_check_launch(bool is_loaded, const void *caller);

typedef enum object_kind {
    OBJECT_NONE,
    OBJECT_STREAM,
    OBJECT_EVENT,
    OBJECT_MODULE,
    OBJECT_FUNCTION,
    OBJECT_GRAPH,
    OBJECT_EXEC,
    OBJECT_USER,
    OBJECT_PHYSICAL,
    OBJECT_KINDS
} object_kind;
/** Handles are not addresses, and are never reused. */
void *object_add(object_kind kind, void *body);
void *object_get(object_kind kind, const void *handle); /* NULL: no such object */
void *object_take(object_kind kind, const void *handle);
extern fake_cuda_counts call_counts;
void call_count(uint64_t *counter, uint64_t by);

/* ---- Devices ---- */

/** Finds this thread's device. @return CUDA_ERROR_INVALID_CONTEXT if there is none. */
CUresult device_here(int *out);
CUcontext context_of(int device);
int device_of_context(CUcontext context); /* -1: no context */
int device_attribute(int attribute);
uint64_t contexts_alive(void);
uint64_t contexts_pushed(void); /* by this thread */

/* ---- Memory ---- */

static inline uintptr_t page_of(uintptr_t at)
{
    return at / PAGE_BYTES * PAGE_BYTES;
}

/** @return bytes of the whole pages in which these bytes lie. */
static inline size_t page_bytes(uintptr_t at, size_t bytes)
{
    return page_of(at + bytes + PAGE_BYTES - 1) - page_of(at);
}

/** @return a copy of the allocation that has that byte; its uses are 0 if there is none. */
allocation allocation_at(uintptr_t at);
/** Unmaps @p a in the GPU process, and closes its file. */
CUresult allocation_unmap(const allocation *a);

/* These five are called under gpu_lock(). */

allocation *allocation_find(uintptr_t at);
/** @param skew  the start's, above a multiple of @p alignment. */
allocation *allocation_place(const area *in, size_t bytes, size_t alignment, size_t skew);
allocation *allocation_insert(uintptr_t start, size_t bytes);
void allocation_remove(allocation *a);
/** Poisons and removes it. */
void allocation_free(allocation *a);
/** Waits until the device's streams have ended all ops that were appended before. */
CUresult gpu_drain(int device);

/* ---- Streams ---- */

/** Finds the slot of a handle that a call was given. */
CUresult stream_find(CUstream handle, int *out);
/** Appends an op to a stream, or to the graph that it captures. */
CUresult stream_put(int slot, const op *o);
/** Appends, whether or not the stream captures. @return the ticket of the last op. */
uint64_t stream_append(int slot, const op *const *ops, int count, appender who);
/** @return the ticket of the last op that was appended so far. */
uint64_t stream_asked(int slot);
CUresult ticket_wait(int slot, uint64_t ticket);
bool ticket_done(int slot, uint64_t ticket);
void launch_run(op *o, int device);
void event_done(const op *o, int slot);
gpu_event *event_find(CUevent handle);

gpu_event *event_new(int device, unsigned flags);
/** Allocates pinned memory for the double itself. */
uintptr_t staging_new(size_t bytes);

/* ---- Captures ---- */

/** For calls that are forbidden while this thread captures, or any thread does in global mode.
 *  @return the error that ends such a call, or 0. */
CUresult capture_forbids(void);
typedef struct capture capture;
/** @return the capture that @p slot is in, which may be invalid, or NULL. */
capture *capture_of(int slot);
void capture_invalidate(capture *c);
/** For calls that cannot be captured. @return the error that ends them; 0 if @p slot does not
 *  capture. */
CUresult capture_refuses(int slot);
CUresult capture_append(int slot, const op *o);
/** For the legacy stream, for which captured blocking streams would wait. The captures stay valid.
 */
CUresult capture_forbids_legacy(int slot);
CUresult capture_record(int slot, int event_slot);
/** @param handled  set if the wait belongs to a capture. */
CUresult capture_wait(int slot, int event_slot, bool *handled);
void capture_forget_event(int event_slot);
bool capture_has_event(int event_slot);

/* ---- Graphs ---- */

typedef struct graph graph;
graph *graph_new(void);

enum { MOST_CAPTURED = 16 /* streams of a capture */ };

/** Where an op is in a graph: it is number @c nth of its stream in the capture, and follows the
 *  first known[s] ops of each stream s. */
typedef struct graph_place {
    int stream, nth, known[MOST_CAPTURED];
} graph_place;

/** @param place  NULL: it follows all earlier ops, and all later ones follow it. */
void graph_add(graph *g, const op *o, const graph_place *place);
void graph_free(graph *g);
/** @return the graph to which the capture adds. */
graph *capture_graph(capture *c);

#endif
