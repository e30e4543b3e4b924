/* SPDX-License-Identifier: Apache-2.0
 * Keeps the keys of regions; a key ends with its region. */
#include "region_keys.h"

#include "nic.h"

#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    key_table own;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

const region_key *key_find(const key_table *t, uint16_t id)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->keys[i].id == id)
            return &t->keys[i];
    return NULL;
}

bool key_put(key_table *t, const region_key *key)
{
    region_key *old = (region_key *)(uintptr_t)key_find(t, key->id);
    if (old == NULL) {
        region_key *keys = realloc(t->keys, (t->count + 1) * sizeof *keys);
        if (keys == NULL)
            return false;
        t->keys = keys;
        old = &keys[t->count++];
    }
    *old = *key;
    return true;
}

static void forget(uint16_t id, uint64_t offset, size_t bytes)
{
    if (id == REGION_HEAP_ID) /* registered as a whole */
        return;
    pthread_mutex_lock(&process.lock);
    const region_key *old = key_find(&process.own, id);
    if (old != NULL) {
        nic_deregister(old->key);
        process.own.keys[old - process.own.keys] = process.own.keys[--process.own.count];
    }
    pthread_mutex_unlock(&process.lock);
}

__attribute__((constructor)) static void watch(void)
{
    static region_watcher watcher = {.gone = forget};
    region_watch(&watcher);
}

/* This adapter cannot access memory of an accelerator. */
region_key region_key_of(uint64_t ref)
{
    region r;
    region_key key = {0};
    if (!region_find(ref, &r) || r.kind == REGION_DEVICE)
        return key;
    pthread_mutex_lock(&process.lock);
    const region_key *old = key_find(&process.own, r.id);
    if (old != NULL) {
        key = *old;
    } else {
        key = (region_key){.id = r.id,
                           .bytes = r.bytes,
                           .key = nic_register(r.base, r.bytes, NULL)};
        if (!key_put(&process.own, &key))
            abort();
    }
    pthread_mutex_unlock(&process.lock);
    return key;
}
