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

/** RING_PROGRESS: what makes progress on works that no thread waits for. */
typedef enum progress_mode {
    PROGRESS_AUTO,   /* a thread that yields to ranks that compute   */
    PROGRESS_THREAD, /* a thread that does not yield                 */
    PROGRESS_NONE    /* only calls to libring in the process         */
} progress_mode;

typedef struct settings {
    char transport[128];      /* RING_TRANSPORT: list as given, "" = all                  */
    char algo[32];            /* RING_ALGO: "" = by cost model                            */
    int channels;             /* RING_CHANNELS: most that a call uses between two ranks;
                                 0: one for each rail. Once rails are counted, 0 is replaced
                                 by their negative number */
    bool device_programs;     /* RING_DEVICE_PROGRAMS: accelerators run calls themselves  */
    int device_blocks;        /* RING_DEVICE_BLOCKS: most blocks of such a call           */
    bool reproducible;        /* RING_REPRODUCIBLE: sums are combined in the order of ranks */
    bool checksum;            /* RING_CHECKSUM: of frames over tcp                        */
    encryption encrypt;       /* RING_ENCRYPT: of data over tcp                           */
    progress_mode progress;   /* RING_PROGRESS                                            */
    double timeout;           /* RING_TIMEOUT: a call, s                                  */
    double peer_timeout;      /* RING_PEER_TIMEOUT: a silent peer, s                      */
    double init_timeout;      /* RING_INIT_TIMEOUT, s                                     */
    bool insecure;            /* RING_INSECURE                                            */
    char secret_file[512];    /* RING_SECRET_FILE                                         */
    int secret_fd;            /* RING_SECRET_FD: inherited descriptor of a file, -1: none */
    char rendezvous_dir[512]; /* RING_RENDEZVOUS_DIR: shared directory to find rank 0 by  */
    char address[256];        /* RING_ADDR: where other ranks connect to, "" = chosen     */
    char interface[64];       /* RING_SOCKET_IFNAME: interface whose address is used      */
    char fault[128];          /* RING_FAULT: transport_fault_wrap()'s spec, for tests     */
    log_level debug;          /* RING_DEBUG                                               */
    transport_ib ib;          /* RING_IB_..., RING_NET_GDR_LEVEL                          */
    bool registration_cache;  /* RING_REGISTRATION_CACHE                                  */
    uint64_t foreign, unfit;  /* bits of the settings that another library's variable sets, and
                                 of those among them whose value does not fit: these have their
                                 default                                                  */
} settings;

/** Reads the environment. A wrong value is RING_ERR_CONFIG, naming variable, value and allowed
 *  values, and *out then has the default. A value of another library's variable that does not fit
 * is replaced by the default without an error. An unknown RING_* variable is a warning with the
 *  nearest name. */
ring_status settings_read(settings *out);

/** Applies the entries of ring_config.settings, such as "RING_ALGO=ring"; they override the
 *  environment. RING_ERR_CONFIG if an entry is wrong, unknown, or of a variable that is read
 *  elsewhere. @param entries  NULL-terminated; NULL: no entries. */
ring_status settings_override(settings *out, const char *const *entries);

/** Warns about other libraries' variables whose values do not fit, once in a process.
 *  @param adapters, gpus  whether any is used here; if not, settings for them are not mentioned. */
void settings_note_unfit(const settings *s, bool adapters, bool gpus);
/** @return the variable of another library that sets @p name, or NULL. */
const char *settings_foreign_name(const settings *s, const char *name);
/** Called when the value of the setting @p name turns out not to fit. If another library's variable
 *  set it, warns that it is not used. @return true if so: the job continues without the value. */
bool settings_leave_out(const settings *s, const char *name, const char *why);

/** One row for `ringinfo env`. */
typedef struct settings_row {
    const char *name, *nccl, *unit, *help, *fallback;
    char value[512];
    char source[64]; /* "default", "environment", "NCCL_DEBUG", "default, not NCCL_IB_SL=16" */
} settings_row;
/** @return *count rows, one for each variable, including those that other rooms and programs read,
 *  such as RING_SIMD, RING_DATA and launch variables. Free with free(). */
settings_row *settings_rows(size_t *count);

enum { SETTINGS_NAME_MAX = 64 };
/** @param entry  of the environment, "NAME=VALUE". @param[out] name  of the variable.
 *  @param[out] nearest  a setting that may be meant, or NULL.
 *  @return true if the name begins with RING_ and is not a setting; the outputs are set only then.
 */
bool settings_unknown(const char *entry, char name[SETTINGS_NAME_MAX], const char **nearest);

#endif
