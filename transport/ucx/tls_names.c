/* SPDX-License-Identifier: Apache-2.0
 * Translates and checks the names of UCX transports in UCX_TLS and RING_UCX_TLS. UCX itself only
 * warns about an unknown name, and fails only if all names are unknown. */
#include "ucx.h"

#include <string.h>

static const char *const known[] = {
    "all",      "sm",       "shm",        "mm",       "posix",     "sysv",      "xpmem",
    "knem",     "cma",      "self",       "loopback", "tcp",       "ib",        "rc",
    "rc_v",     "rc_x",     "rc_verbs",   "rc_mlx5",  "ud",        "ud_v",      "ud_x",
    "ud_verbs", "ud_mlx5",  "dc",         "dc_x",     "dc_mlx5",   "cuda",      "cuda_copy",
    "cuda_ipc", "gdr_copy", "rocm",       "rocm_ipc", "rocm_copy", "rocm_gdr",  "gaudi",
    "ze",       "ze_copy",  "ze_ipc",     "ze_gdr",   "ugni",      "ugni_rdma", "ugni_smsg",
    "ugni_udt", "rdmacm",   "tcp_sockcm",
};

/* A name may begin with '\' or '^', and may end with ":aux". */
static bool is_known(const char *name, size_t length)
{
    while (length > 0 && (*name == '\\' || *name == '^'))
        name++, length--;
    const char *colon = memchr(name, ':', length);
    length = colon != NULL ? (size_t)(colon - name) : length;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == length && memcmp(known[i], name, length) == 0)
            return true;
    return length == 0;
}

static bool append(char out[UCX_TLS_MOST], const char *text, size_t length)
{
    const size_t used = strlen(out);
    return text_format(out + used, UCX_TLS_MOST - used, "%.*s", (int)length, text);
}

/* Appends a name to a comma-separated list. */
static bool append_name(char out[UCX_TLS_MOST], const char *text, size_t length)
{
    return (out[0] == '\0' || append(out, ",", 1)) && append(out, text, length);
}

bool ucx_tls_translate(const char *list, char out[UCX_TLS_MOST], char unknown[UCX_TLS_MOST])
{
    static const char old[] = "openib";
    bool fits = true;
    out[0] = unknown[0] = '\0';
    while (*list != '\0' && fits) {
        const size_t length = strcspn(list, ",");
        const bool excludes = *list == '^';
        const char *name = list + excludes;
        const size_t bytes = length - excludes;
        const bool is_old = bytes == sizeof old - 1 && memcmp(name, old, bytes) == 0;
        if (is_old)
            fits = append_name(out, excludes ? "^ib" : "ib", excludes ? 3 : 2);
        else
            fits = append_name(out, list, length);
        if (!is_old && !is_known(name, bytes))
            fits = fits && append_name(unknown, name, bytes);
        list += length + (list[length] == ',');
    }
    return fits;
}
