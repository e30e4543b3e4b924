/* SPDX-License-Identifier: Apache-2.0
 *
 * settings: reads the RING_* variables that configure a communicator. One table describes each of
 * them: its name, the NCCL variable of the same meaning, its default, unit and help text.
 */
#ifndef RING_SETTINGS_H
#define RING_SETTINGS_H

#include "base.h"
#include "transport_ib.h"

enum { SETTINGS_MOST_CHANNELS = 16 };

/** RING_ENCRYPT. The ranks also exchange these values when they join. */
typedef enum encryption {
    ENCRYPT_NO,
    ENCRYPT_AES256GCM,
    ENCRYPT_CHACHA20,
    ENCRYPT_BEST /* the fastest cipher that rank 0 has; it chooses one of the above */
} encryption;

/** RING_PROGRESS: the threads that make progress on works that no thread waits for. */
typedef enum progress_mode {
    PROGRESS_AUTO,   /* a thread that yields its core to other ranks */
    PROGRESS_THREAD, /* a thread that does not yield                 */
    PROGRESS_NONE    /* no thread: progress only during calls of this process */
} progress_mode;

/** RING_EXIT: what a process that exits without ring_comm_destroy() is to the other ranks. */
typedef enum exit_mode {
    EXIT_LOST, /* a lost rank */
    EXIT_LEAVE /* a rank that has left, if none of its calls is in flight */
} exit_mode;

typedef struct settings {
    char transport[128];      /* RING_TRANSPORT: the list as it was given, "" = all       */
    char algo[32];            /* RING_ALGO: "" = the cost model chooses                   */
    int channels;             /* RING_CHANNELS: most channels of a call between two ranks; 0: one
                                 for each rail. When rails have been counted, their number,
                                 negated, replaces 0 */
    bool device_programs;     /* RING_DEVICE_PROGRAMS: GPUs run calls themselves          */
    int device_blocks;        /* RING_DEVICE_BLOCKS: most blocks of a call that GPUs run  */
    bool hold_streams;        /* RING_HOLD_STREAMS: failed calls keep streams stopped     */
    bool nvtx;                /* RING_NVTX: profilers show calls                          */
    bool p2p;                 /* RING_P2P: GPUs access each other's memory                */
    bool reproducible;        /* RING_REPRODUCIBLE: sums are combined in the order of ranks */
    bool checksum;            /* RING_CHECKSUM: of frames over tcp                        */
    encryption encrypt;       /* RING_ENCRYPT: of data over tcp                           */
    progress_mode progress;   /* RING_PROGRESS                                            */
    double timeout;           /* RING_TIMEOUT: of a call, s, or NUMBER_NO_LIMIT           */
    double peer_timeout;      /* RING_PEER_TIMEOUT: of a silent peer, s                   */
    double init_timeout;      /* RING_INIT_TIMEOUT: of the start, s, or NUMBER_NO_LIMIT   */
    exit_mode at_exit;        /* RING_EXIT                                                */
    bool insecure;            /* RING_INSECURE                                            */
    char secret_file[512];    /* RING_SECRET_FILE                                         */
    int secret_fd;            /* RING_SECRET_FD: inherited descriptor of a file, -1: none */
    char rendezvous_dir[512]; /* RING_RENDEZVOUS_DIR: shared directory to find rank 0     */
    char address[256];        /* RING_ADDR: address that peers connect to, "" = chosen    */
    char interface[64];       /* RING_SOCKET_IFNAME: interfaces that peers connect to     */
    char host_id[64];         /* RING_HOST_ID: tells hosts apart, beside what they show   */
    char fault[128];          /* RING_FAULT: for transport_fault_wrap(), in tests         */
    log_level debug;          /* RING_DEBUG                                               */
    transport_ib ib;          /* RING_IB_..., RING_NET_GDR_LEVEL                          */
    bool registration_cache;  /* RING_REGISTRATION_CACHE                                  */
    /** Sets of settings, a bit for each row of the table. `foreign`: another library's variable
     *  sets the setting. `unfit`: the value of that variable is not allowed here, so the setting
     *  has its default. */
    uint64_t foreign, unfit;
} settings;

/** Reads the settings from the environment.
 *  @return RING_ERR_CONFIG if a RING_* variable has a wrong value; the message names the variable,
 *  the value and the allowed values, and *out has the default. A value of another library's
 *  variable that is not allowed here is replaced by the default without an error. An unknown RING_*
 *  variable causes a warning with the nearest name. */
ring_status settings_read(settings *out);

/** Applies the entries of ring_config.settings, such as "RING_ALGO=ring"; they override the
 *  environment. @param entries  ended by NULL; NULL: no entries.
 *  @return RING_ERR_CONFIG if an entry is wrong or unknown, or sets a variable that another room
 *  reads. */
ring_status settings_override(settings *out, const char *const *entries);

/** Warns, once in a process, about other libraries' variables whose values are not allowed here.
 *  @param adapters, gpus  true if this process uses any; if not, there are no warnings about the
 *  settings for them. */
void settings_note_unfit(const settings *s, bool adapters, bool gpus);
/** @return the variable of another library that sets @p name, or NULL. */
const char *settings_foreign_name(const settings *s, const char *name);
/** Called when the value of the setting @p name turns out to be unusable for the reason @p why. If
 *  another library's variable sets it, warns that it is not used, and returns true: the job
 *  continues without the value. Otherwise the caller reports an error. */
bool settings_leave_out(const settings *s, const char *name, const char *why);

/** A variable in the output of `ringinfo env`. */
typedef struct settings_row {
    const char *name, *nccl, *unit, *help, *fallback;
    char value[512];
    char source[64]; /* "default", "environment", "NCCL_DEBUG", "default, not NCCL_IB_SL=16" */
} settings_row;
/** @return *count rows, one for each variable, including RING_SIMD, RING_DATA and others that other
 *  rooms and programs read. The caller frees them with free(). */
settings_row *settings_rows(size_t *count);

enum { SETTINGS_NAME_MAX = 64 };
/** Finds misspelled variables. @param entry  of the environment, "NAME=VALUE".
 *  @param[out] name  of the variable. @param[out] nearest  a setting that may be meant, or NULL.
 *  @return true if the name begins with RING_ and is not a setting; the outputs are set only then.
 */
bool settings_unknown(const char *entry, char name[SETTINGS_NAME_MAX], const char **nearest);

#endif
