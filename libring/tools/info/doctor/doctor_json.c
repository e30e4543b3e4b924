/* SPDX-License-Identifier: Apache-2.0
 * Writes the JSON of this host from its facts and its report, and reads values from the JSON of
 * other hosts. */
#include "doctor_json.h"

#include "settings.h"

#include <ctype.h>
#include <gnu/libc-version.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Reading --------------------------------------------------------------------------------- */

const cJSON *told_item(const cJSON *told, const char *part, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(told, part), name);
}

const char *told_text(const cJSON *told, const char *part, const char *name)
{
    return cJSON_GetStringValue(told_item(told, part, name));
}

bool words_have(const char *list, const char *word, size_t length)
{
    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t here = strcspn(at, " ");
        if (here == length && strncmp(at, word, length) == 0)
            return true;
        at += here + (at[here] == ' ');
    }
    return false;
}

/* ---- Values that should be the same on all hosts --------------------------------------------- */

/* Adds a word to the list at @p name, unless the list has the word. Blanks in the word become '_'.
 */
RING_PRINTF(3, 4)
static void put_word(cJSON *o, const char *name, const char *format, ...)
{
    char word[600], longer[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(word, sizeof word, format, args);
    va_end(args);
    for (char *at = word; *at != '\0'; at++)
        *at = isspace((unsigned char)*at) ? '_' : *at;
    const char *list = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    if (word[0] == '\0' || words_have(list, word, strlen(word)))
        return;
    if (list == NULL)
        cJSON_AddStringToObject(o, name, word);
    else if (text_format(longer, sizeof longer, "%s %s", list, word))
        cJSON_ReplaceItemInObjectCaseSensitive(o, name, cJSON_CreateString(longer));
}

/* @return true for settings that may differ between hosts: of the launch, the address, the host's
 * id, the secret. */
static bool may_differ(const settings_row *row)
{
    return strncmp(row->help, "launch:", 7) == 0 || strcmp(row->name, "RING_ADDR") == 0 ||
           strcmp(row->name, "RING_HOST_ID") == 0 || strncmp(row->name, "RING_SECRET_", 12) == 0;
}

static void put_settings(cJSON *o)
{
    size_t count;
    settings_row *rows = settings_rows(&count);
    for (size_t i = 0; rows != NULL && i < count; i++)
        if (strncmp(rows[i].source, "default", 7) != 0 && !may_differ(&rows[i]))
            put_word(o, "settings", "%s=%s", rows[i].name, rows[i].value);
    free(rows);
    if (!cJSON_HasObjectItem(o, "settings"))
        put_word(o, "settings", "none_set");
}

static void put_software(cJSON *o, const facts *f)
{
    const int version = ring_version();
    put_word(o, "libring", "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    cJSON_AddStringToObject(o, "kernel", f->kernel);
    cJSON_AddStringToObject(o, "glibc", gnu_get_libc_version());
    put_settings(o);
    if (f->pci.driver[0] != '\0')
        cJSON_AddStringToObject(o, "nvidia_driver", f->pci.driver);
}

static void put_port(cJSON *o, const fact_port *p)
{
    put_word(o, "link_layers", "%s", p->link_layer);
    put_word(o, "rates", "%s", p->rate);
    if (p->firmware[0] != '\0')
        put_word(o, "firmware", "%s:%s", p->model, p->firmware);
    if (!p->is_roce && p->gid_count > 0)
        put_word(o, "subnet_prefixes", "%.19s", p->gids[0].gid);
    if (!p->is_roce)
        return;
    for (size_t i = 0; i < p->gid_count; i++)
        put_word(o, "gid_types", "%s", p->gids[i].type);
    if (p->mtu > 0)
        put_word(o, "roce_mtus", "%d", p->mtu);
    put_word(o, "traffic_classes", "%d", p->sent_class);
}

/* "rdma_speed" is the rate in Gbit/s of the slowest port that works; 0 for an adapter that is made
 * of software. It is missing if no port works. */
static cJSON *alike(const facts *f)
{
    double least = HUGE_VAL; /* bytes per second */
    cJSON *o = cJSON_CreateObject();
    put_software(o, f);
    const fact_interface *chosen = f->net.chosen;
    if (chosen != NULL)
        put_word(o, "mtu", "%ld", chosen->mtu);
    if (chosen != NULL && chosen->speed > 0)
        put_word(o, "speed", "%ld", chosen->speed);
    for (size_t k = 0; chosen != NULL && k < chosen->subnet_count; k++)
        put_word(o, "networks", "%s", chosen->subnets[k]);
    for (size_t i = 0; i < f->trial_count; i++)
        if (f->trials[i].error[0] == '\0')
            least = fmin(least, f->trials[i].rate);
    if (!isinf(least))
        cJSON_AddNumberToObject(o, "rdma_speed", least * 8e-9);
    for (size_t i = 0; i < f->port_count; i++)
        if (f->ports[i].is_active)
            put_port(o, &f->ports[i]);
    return o;
}

/* Names, for values in "alike", the interfaces that have them. */
static cJSON *interfaces(const facts *f)
{
    cJSON *o = cJSON_CreateObject();
    put_word(o, "mtu", "%s", f->net.chosen != NULL ? f->net.chosen->name : "");
    put_word(o, "speed", "%s", f->net.chosen != NULL ? f->net.chosen->name : "");
    for (size_t i = 0; i < f->port_count; i++)
        if (f->ports[i].net != NULL && !cJSON_HasObjectItem(o, "roce_mtus"))
            put_word(o, "roce_mtus", "%s", f->ports[i].net->name);
    return o;
}

/* Lists counters that should not rise, named like "mlx5_0:1 symbol_error". */
static cJSON *counters(const facts *f)
{
    char name[96];
    cJSON *o = cJSON_CreateObject();
    for (size_t i = 0; i < f->net.count; i++) {
        snprintf(name, sizeof name, "%s errors", f->net.interfaces[i].name);
        if (f->net.interfaces[i].physical)
            cJSON_AddNumberToObject(o, name, f->net.interfaces[i].errors[1]);
    }
    for (size_t i = 0; i < f->port_count; i++) {
        const fact_port *p = &f->ports[i];
        for (size_t k = 0; k < FACTS_COUNTERS; k++) {
            snprintf(name, sizeof name, "%s %s", p->name, strchr(fact_counters[k], '/') + 1);
            if (p->counters[1][k] >= 0)
                cJSON_AddNumberToObject(o, name, p->counters[1][k]);
        }
    }
    return o;
}

cJSON *doctor_findings(const report *r)
{
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < r->count; i++) {
        const info_row *row = &r->rows[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "level", verdict_name(row->verdict));
        cJSON_AddStringToObject(one, "section", row->section);
        cJSON_AddStringToObject(one, "name", row->name);
        cJSON_AddStringToObject(one, "value", row->value);
        cJSON_AddStringToObject(one, "why", row->advice);
        cJSON_AddStringToObject(one, "command", row->command);
        cJSON_AddItemToArray(list, one);
    }
    return list;
}

cJSON *doctor_json(const facts *f, const report *r)
{
    struct timespec now;
    cJSON *o = cJSON_CreateObject();
    clock_gettime(CLOCK_REALTIME, &now);
    cJSON_AddStringToObject(o, "host", f->net.hostname);
    cJSON_AddNumberToObject(o, "time", (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    cJSON_AddItemToObject(o, "findings", doctor_findings(r));
    cJSON_AddItemToObject(o, "alike", alike(f));
    cJSON_AddItemToObject(o, "interfaces", interfaces(f));
    cJSON_AddItemToObject(o, "counters", counters(f));
    return o;
}
