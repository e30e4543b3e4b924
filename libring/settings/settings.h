/* SPDX-License-Identifier: Apache-2.0
 *
 * settings: every RING_* variable in one table: name, NCCL name of the same meaning,
 * default, unit, help, and where its value came from.
 */
#ifndef RING_SETTINGS_H
#define RING_SETTINGS_H

#include "base.h"
#include "pci_distance.h"

enum { SETTINGS_MOST_CHANNELS = 16 };

/** RING_ENCRYPT. The values of a start's terms, too. */
typedef enum encryption {
    ENCRYPT_NO,
    ENCRYPT_AES256GCM,
    ENCRYPT_CHACHA20,
    ENCRYPT_BEST /* the fastest of them; until rank 0 has chosen */
} encryption;

/** RING_PROGRESS: the mover of orphans (works under way without a waiting thread). */
typedef enum progress_mode {
    PROGRESS_AUTO,   /* a thread, which yields to ranks that compute */
    PROGRESS_THREAD, /* a thread, always                                 */
    PROGRESS_NONE    /* calls of libring in the process                  */
} progress_mode;

typedef struct settings {
    char transport[128];      /* RING_TRANSPORT: list as given, "" = all                 */
    char algo[32];            /* RING_ALGO: "" = by cost model                            */
    int channels;             /* RING_CHANNELS: most that a call uses between two ranks;
                                 0: by rails, and once those are counted: their negative  */
    bool device_programs;     /* RING_DEVICE_PROGRAMS: accelerators run calls themselves      */
    int device_blocks;        /* RING_DEVICE_BLOCKS: of a call there, at most                 */
    bool reproducible;        /* RING_REPRODUCIBLE: sums are combined in the order of ranks */
    bool checksum;            /* RING_CHECKSUM: of frames over tcp                        */
    encryption encrypt;       /* RING_ENCRYPT: of what goes over tcp                      */
    progress_mode progress;   /* RING_PROGRESS                                            */
    double timeout;           /* RING_TIMEOUT: a call, s                                  */
    double peer_timeout;      /* RING_PEER_TIMEOUT: a silent peer, s                      */
    double init_timeout;      /* RING_INIT_TIMEOUT, s                                     */
    bool insecure;            /* RING_INSECURE                                            */
    char secret_file[512];    /* RING_SECRET_FILE                                         */
    int secret_fd;            /* RING_SECRET_FD: inherited descriptor of a file, -1: none */
    char rendezvous_dir[512]; /* RING_RENDEZVOUS_DIR: shared directory to find rank 0 by  */
    char address[256];        /* RING_ADDR: address for other ranks, "" = chosen          */
    char interface[64];       /* RING_SOCKET_IFNAME: interface whose address is used      */
    char fault[128];          /* RING_FAULT: transport_fault_wrap()'s spec, for tests     */
    log_level debug;          /* RING_DEBUG                                               */
    bool ib_disable;          /* RING_IB_DISABLE                                          */
    char ib_hca[128];         /* RING_IB_HCA: as NCCL_IB_HCA; "": all                     */
    int ib_gid_index;         /* RING_IB_GID_INDEX: -1: chosen                            */
    int ib_pkey;              /* RING_IB_PKEY: index                                      */
    int ib_sl, ib_tc;         /* RING_IB_SL, RING_IB_TC                                   */
    int ib_timeout, ib_retry; /* RING_IB_TIMEOUT, RING_IB_RETRY_CNT                       */
    bool ib_relaxed;          /* RING_IB_PCI_RELAXED_ORDERING                             */
    pci_distance gdr_level;   /* RING_NET_GDR_LEVEL                                       */
    bool registration_cache;  /* RING_REGISTRATION_CACHE                                  */
    uint64_t foreign, unfit;  /* bits of those that another library's variable gives, and of
                                 those of them whose value does not fit: the default holds    */
} settings;

/** Reads the environment. Wrong values are RING_ERR_CONFIG naming variable, value and allowed
 *  values, and *out has the default instead, as it has for values of other libraries' variables
 * that do not fit; an unknown RING_* variable is a warning with the nearest name. */
ring_status settings_read(settings *out);

/** Applies the entries of ring_config.settings, ahead of the environment: "RING_ALGO=ring", ….
 *  RING_ERR_CONFIG for an entry that is wrong, unknown, or of a variable that is read elsewhere.
 *  @param entries  NULL-terminated; NULL: none. */
ring_status settings_override(settings *out, const char *const *entries);

/** Warns once a process of other libraries' variables that do not fit.
 *  @param adapters, gpus  whether any is used here; without, nothing about them is said. */
void settings_note_unfit(const settings *s, bool adapters, bool gpus);
/** @return the variable of another library that gives the setting @p name, or NULL. */
const char *settings_foreign_name(const settings *s, const char *name);
/** For a value of the setting @p name that turns out not to fit: warns in the same way, if another
 *  library's variable gives it. @return whether it does: the job goes on without it then. */
bool settings_leave_out(const settings *s, const char *name, const char *why);

/** One row for `ringinfo env`. */
typedef struct settings_row {
    const char *name, *nccl, *unit, *help, *fallback;
    char value[512];
    char source[64]; /* "default", "environment", "NCCL_DEBUG", "default, not NCCL_IB_SL=16" */
} settings_row;
/** @return rows of all variables (also those that other rooms and programs read, e.g.
 *  RING_SIMD, RING_DATA, and launch variables); *count of them. Free with free(). */
settings_row *settings_rows(size_t *count);

enum { SETTINGS_NAME_MAX = 64 };
/** @param entry  of the environment, "NAME=VALUE". @param[out] name  of it.
 *  @param[out] nearest  a setting that may be meant, or NULL.
 *  @return true if it begins with RING_ and is no setting; name and nearest are set then. */
bool settings_unknown(const char *entry, char name[SETTINGS_NAME_MAX], const char **nearest);

#endif
