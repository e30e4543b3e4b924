/* SPDX-License-Identifier: Apache-2.0
 * Looks for cuBLASLt in the places where users have it, and loads it once per process. */
#include "cublaslt.h"

#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared_object.h"

enum { PATH_ROOM = 4096 };

static struct {
    pthread_once_t once;
    cublaslt functions;
    bool loaded;
    char why[512];
} library = {.once = PTHREAD_ONCE_INIT};

static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

/* A library that is too new for the driver loads, but makes no handle. */
static bool makes_handle(const char *path)
{
    cublasLtHandle_t handle;
    const cublasStatus_t status = library.functions.create(&handle);
    if (status == CUBLAS_STATUS_SUCCESS)
        return library.functions.destroy(handle) == CUBLAS_STATUS_SUCCESS;
    (void)text_format(library.why, sizeof library.why,
                      "%s cannot be used: starting cuBLASLt (cublasLtCreate): %s", path,
                      library.functions.status_name(status));
    return false;
}

static bool load_file(const char *path)
{
    cublaslt *f = &library.functions;
    const object_symbol symbols[] = {
#define ROW(name, member, parameters) {"cublasLt" #name, &f->member, false},
        CUBLASLT_FUNCTIONS(ROW)
#undef ROW
            {"cublasLtGetStatusName", &f->status_name, false},
    };
    return shared_object_load(&(shared_object){.file = path,
                                               .if_absent = "is it installed?",
                                               .if_old = "it is too old; update it",
                                               .symbols = symbols,
                                               .count = sizeof symbols / sizeof *symbols}) ==
               RING_OK &&
           makes_handle(path);
}

/* Loads the first library that can be used from the folders that match @p pattern. */
static bool load_from(const char *pattern)
{
    bool found = false;
    for (size_t n = 0; n < sizeof names / sizeof *names && !found; n++) {
        char path[PATH_ROOM];
        glob_t matches;
        if (!text_format(path, sizeof path, "%s/%s", pattern, names[n]) ||
            glob(path, 0, NULL, &matches) != 0)
            continue;
        for (size_t i = 0; i < matches.gl_pathc && !found; i++)
            found = load_file(matches.gl_pathv[i]);
        globfree(&matches);
    }
    return found;
}

/* Looks in the site-packages of the python3 that PATH finds, which may be a virtual environment's.
 */
static bool load_from_wheels(void)
{
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");
        char python[PATH_ROOM], pattern[PATH_ROOM];
        if (text_format(python, sizeof python, "%.*s/python3", (int)length, path) &&
            access(python, X_OK) == 0)
            return text_format(pattern, sizeof pattern,
                               "%.*s/../lib/python3*/*-packages/nvidia/*/lib", (int)length, path) &&
                   load_from(pattern);
        path += length + (path[length] == ':');
    }
    return false;
}

static bool find_library(void)
{
    const char *folder = getenv("RINGTRAIN_CUBLASLT"), *cuda = getenv("CUDA_HOME");
    char pattern[PATH_ROOM];
    if (folder != NULL && *folder != '\0')
        return load_from(folder);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (load_file(names[n]))
            return true;
    if (cuda != NULL && text_format(pattern, sizeof pattern, "%s/lib64", cuda) &&
        load_from(pattern))
        return true;
    return load_from_wheels();
}

static void load(void)
{
    library.loaded = find_library();
    if (!library.loaded && library.why[0] == '\0')
        (void)text_format(library.why, sizeof library.why,
                          "cuBLASLt (%s or %s) was not found; install the CUDA Toolkit or NVIDIA's "
                          "wheel nvidia-cublas, or set RINGTRAIN_CUBLASLT to its folder",
                          names[0], names[1]);
}

const cublaslt *cublaslt_load(void)
{
    pthread_once(&library.once, load);
    if (library.loaded)
        return &library.functions;
    fail(RING_ERR_UNSUPPORTED, "%s", library.why);
    return NULL;
}

ring_status cublaslt_check(cublasStatus_t status, const char *what)
{
    return status == CUBLAS_STATUS_SUCCESS
               ? RING_OK
               : fail(RING_ERR_SYSTEM, "%s: %s", what, library.functions.status_name(status));
}
