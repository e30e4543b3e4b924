// SPDX-License-Identifier: Apache-2.0
// Implements the cache with three tables: segments, all blocks by address, and free blocks by size.
#include "block_cache.h"

#include <algorithm>

#include <pthread.h>

#include "ring/ring.h"

namespace ring_torch
{

namespace
{

constexpr size_t line = 64, page = 4096;
constexpr size_t small_most = 1 << 20;    // bytes of the largest request that counts as small
constexpr size_t small_segment = 2 << 20; // bytes of a segment for small requests

} // namespace

BlockCache &BlockCache::get()
{
    static auto *cache = new BlockCache;
    return *cache;
}

// A fork waits for the lock, so that the child's copy of the cache is consistent.
BlockCache::BlockCache()
{
    pthread_atfork(lock, unlock, unlock_in_child);
}

void BlockCache::lock()
{
    get().mutex_.lock();
}

void BlockCache::unlock()
{
    get().mutex_.unlock();
}

void BlockCache::unlock_in_child()
{
    get().in_child_ = true;
    unlock();
}

size_t BlockCache::rounded(size_t bytes)
{
    size_t unit = bytes > small_most ? page : line;
    return (bytes + unit - 1) / unit * unit;
}

BlockCache::Kind BlockCache::kind_of(size_t bytes)
{
    return bytes > small_most ? large : small;
}

void *BlockCache::take(size_t bytes)
{
    if (bytes == 0 || bytes > SIZE_MAX - page)
        return nullptr;
    bytes = rounded(bytes);
    std::lock_guard lock(mutex_);
    if (in_child_)
        return nullptr;
    auto &free = free_[kind_of(bytes)];
    auto best = free.lower_bound({bytes, nullptr});
    if (best == free.end()) {
        if (!add_segment(bytes)) {
            stats_.refusals++;
            return nullptr;
        }
        best = free.lower_bound({bytes, nullptr});
    }
    auto block = blocks_.find(best->second);
    remove_free(block);
    split(block, bytes);
    block->second.used = true;
    stats_.requests++;
    stats_.used += block->second.bytes;
    return block->first;
}

bool BlockCache::give_back(void *memory)
{
    std::lock_guard lock(mutex_);
    auto block = blocks_.find(static_cast<char *>(memory));
    if (block == blocks_.end())
        return false;
    if (in_child_)
        return true;
    block->second.used = false;
    stats_.used -= block->second.bytes;
    if (block != blocks_.begin())
        block = merge(std::prev(block), block);
    merge(block, std::next(block));
    add_free(block);
    return true;
}

bool BlockCache::holds(const void *memory)
{
    auto *address = static_cast<const char *>(memory);
    std::lock_guard lock(mutex_);
    auto after = segments_.upper_bound(const_cast<char *>(address));
    if (after == segments_.begin())
        return false;
    auto segment = std::prev(after);
    return size_t(address - segment->first) < segment->second;
}

BlockCache::Stats BlockCache::stats()
{
    std::lock_guard lock(mutex_);
    return stats_;
}

void BlockCache::empty()
{
    std::lock_guard lock(mutex_);
    if (!in_child_)
        empty_locked();
}

void BlockCache::empty_locked()
{
    for (auto segment = segments_.begin(); segment != segments_.end();) {
        auto [memory, bytes] = *segment;
        auto block = blocks_.find(memory);
        if (block->second.used || block->second.bytes != bytes) {
            ++segment;
            continue;
        }
        remove_free(block);
        blocks_.erase(block);
        segment = segments_.erase(segment);
        stats_.reserved -= bytes;
        ring_mem_free(memory);
    }
}

bool BlockCache::add_segment(size_t bytes)
{
    Kind kind = kind_of(bytes);
    if (kind == small)
        bytes = small_segment;
    void *memory;
    if (ring_mem_alloc(&memory, bytes) != RING_OK) {
        empty_locked();
        if (ring_mem_alloc(&memory, bytes) != RING_OK)
            return false;
    }
    auto *start = static_cast<char *>(memory);
    segments_[start] = bytes;
    add_free(blocks_.emplace(start, Block{bytes, start, kind, false}).first);
    stats_.reserved += bytes;
    stats_.allocations++;
    return true;
}

// Splits off the memory after the first `bytes` as a free block, if it is large enough for a
// request.
void BlockCache::split(Blocks::iterator block, size_t bytes)
{
    size_t rest = block->second.bytes - bytes;
    if (rest < (block->second.kind == small ? line : small_most + page))
        return;
    Block cut_off = block->second;
    cut_off.bytes = rest;
    block->second.bytes = bytes;
    add_free(blocks_.emplace(block->first + bytes, cut_off).first);
}

// Merges two neighbours if both are free and in one segment. One of the two is not in free_ yet;
// removing it there has no effect. Returns the block that contains the second one.
BlockCache::Blocks::iterator BlockCache::merge(Blocks::iterator block, Blocks::iterator next)
{
    if (next == blocks_.end() || block->second.segment != next->second.segment ||
        block->second.used || next->second.used)
        return next;
    remove_free(block);
    remove_free(next);
    block->second.bytes += next->second.bytes;
    blocks_.erase(next);
    return block;
}

void BlockCache::add_free(Blocks::iterator block)
{
    free_[block->second.kind].emplace(block->second.bytes, block->first);
}

void BlockCache::remove_free(Blocks::iterator block)
{
    free_[block->second.kind].erase({block->second.bytes, block->first});
}

} // namespace ring_torch
