/* SPDX-License-Identifier: Apache-2.0
 * FAKE_IBVERBS. An option that is not understood ends the process: a test that asks for something
 * must not run without it. */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fake_settings settings = {.devices = 2,
                                 .ports = 1,
                                 .most_inline = 256,
                                 .mtu = 1024,
                                 .most_wrs = 16384,
                                 .most_reads = 16,
                                 .memlock = UINT64_MAX,
                                 .seed = 88172645463325252u};

static uint64_t number(const char *option, const char *value, uint64_t least, uint64_t most)
{
    char *end;
    const unsigned long long n = strtoull(value, &end, 10);
    if (*value == '\0' || *value == '-' || *end != '\0' || n < least || n > most)
        fake_misuse("FAKE_IBVERBS: a wrong number", option);
    return n;
}

static void set_link(const char *value)
{
    settings.infiniband = strcmp(value, "ib") == 0;
    if (!settings.infiniband && strcmp(value, "eth") != 0)
        fake_misuse("FAKE_IBVERBS: link is ib or eth, not", value);
}

static void set_down(const char *value)
{
    if (strlen(value) >= sizeof settings.down)
        fake_misuse("FAKE_IBVERBS: too long", value);
    strcpy(settings.down, value);
}

static void set_mtu(const char *value)
{
    settings.mtu = (uint32_t)number("mtu", value, 256, 4096);
    if ((settings.mtu & (settings.mtu - 1)) != 0)
        fake_misuse("FAKE_IBVERBS: an MTU is 256, 512, 1024, 2048 or 4096, not", value);
}

static void set_failure(char *value)
{
    char *colon = strchr(value, ':');
    if (colon == NULL)
        fake_misuse("FAKE_IBVERBS: fail=FUNCTION:N, not", value);
    *colon = '\0';
    if (!fake_ibverbs_fail(value, (int)number("fail", colon + 1, 1, 1000000000)))
        fake_misuse("FAKE_IBVERBS: no such function to fail", value);
}

static bool set_flag(const char *name)
{
    if (strcmp(name, "no_dmabuf") == 0)
        settings.no_dmabuf = true;
    else if (strcmp(name, "no_copy_on_fork") == 0)
        settings.no_copy_on_fork = true;
    else if (strcmp(name, "strict_inline") == 0)
        settings.strict_inline = true;
    else
        return false;
    return true;
}

static bool set_number(const char *name, const char *value)
{
    if (strcmp(name, "devices") == 0)
        settings.devices = (int)number(name, value, 0, MOST_DEVICES);
    else if (strcmp(name, "ports") == 0)
        settings.ports = (int)number(name, value, 1, MOST_PORTS);
    else if (strcmp(name, "inline") == 0)
        settings.most_inline = (uint32_t)number(name, value, 0, 4096);
    else if (strcmp(name, "wrs") == 0)
        settings.most_wrs = (uint32_t)number(name, value, 1, 1 << 20);
    else if (strcmp(name, "rd_atomic") == 0)
        settings.most_reads = (uint32_t)number(name, value, 1, 255);
    else if (strcmp(name, "memlock") == 0)
        settings.memlock = number(name, value, 0, UINT64_MAX);
    else if (strcmp(name, "seed") == 0)
        settings.seed = number(name, value, 1, UINT64_MAX);
    else if (strcmp(name, "delay") == 0)
        settings.delay = 1e-6 * (double)number(name, value, 0, 10000000);
    else
        return false;
    return true;
}

static bool set_other(const char *name, char *value)
{
    if (strcmp(name, "link") == 0)
        set_link(value);
    else if (strcmp(name, "down") == 0)
        set_down(value);
    else if (strcmp(name, "mtu") == 0)
        set_mtu(value);
    else if (strcmp(name, "fail") == 0)
        set_failure(value);
    else
        return false;
    return true;
}

static void set(char *option)
{
    char *value = strchr(option, '=');
    bool known;
    if (value == NULL) {
        known = set_flag(option);
    } else {
        *value++ = '\0';
        known = set_number(option, value) || set_other(option, value);
    }
    if (!known)
        fake_misuse("FAKE_IBVERBS: unknown option", option);
}

static void read_all(void)
{
    const char *text = getenv("FAKE_IBVERBS");
    char *copy = text != NULL ? strdup(text) : NULL, *rest = NULL;
    if (copy == NULL)
        return;
    for (char *o = strtok_r(copy, ",", &rest); o != NULL; o = strtok_r(NULL, ",", &rest))
        set(o);
    free(copy);
}

const fake_settings *fake_settings_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_all);
    return &settings;
}
