// SPDX-License-Identifier: Apache-2.0
// Caches memory of ring_mem_alloc() for later tensors, because each allocation of libring touches
// every page, which takes a millisecond per MiB.
#ifndef RING_TORCH_BLOCK_CACHE_H
#define RING_TORCH_BLOCK_CACHE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace ring_torch
{

/// Divides segments, which come from ring_mem_alloc(), into blocks that are used or free. A request
/// takes the smallest free block that is large enough. A block that is given back is merged with
/// free neighbours. Small requests have segments of their own, so that they do not fragment those
/// of large requests. Thread-safe.
///
/// A forked child cannot access this memory: it gets no blocks, and giving one back has no effect.
class BlockCache
{
  public:
    struct Stats {
        size_t reserved;      // bytes of all segments
        size_t used;          // bytes of the blocks in use
        uint64_t requests;    // number of requests that got a block
        uint64_t allocations; // how many of them needed a call of ring_mem_alloc()
        uint64_t refusals;    // number of requests that failed, as no shared memory was left
    };

    /// The cache of this process. It is never destroyed, because tensors may be freed at any time
    /// until the process ends.
    static BlockCache &get();

    /// Returns a block of at least `bytes`, aligned to a cache line, not zeroed. Null: no shared
    /// memory is left, or this is a forked child.
    void *take(size_t bytes);
    /// Gives a block back. False: `memory` is not a block of take() in this process or its parent.
    bool give_back(void *memory);
    /// Returns true if the memory is in one of the segments.
    bool holds(const void *memory);
    /// Frees the segments without used blocks.
    void empty();
    Stats stats();

  private:
    enum Kind { small, large };
    struct Block {
        size_t bytes;
        char *segment; // start of the segment that contains it
        Kind kind;     // which requests the segment is for
        bool used;
    };
    using Blocks = std::map<char *, Block>; // by address

    BlockCache();
    static size_t rounded(size_t bytes);
    static Kind kind_of(size_t bytes);
    bool add_segment(size_t bytes);
    void split(Blocks::iterator block, size_t bytes);
    Blocks::iterator merge(Blocks::iterator block, Blocks::iterator next);
    void add_free(Blocks::iterator block);
    void remove_free(Blocks::iterator block);
    void empty_locked();
    static void lock();
    static void unlock();
    static void unlock_in_child();

    std::mutex mutex_;
    bool in_child_ = false;
    std::map<char *, size_t> segments_; // start and bytes of each segment
    Blocks blocks_;
    std::set<std::pair<size_t, char *>> free_[2]; // free blocks of each kind, by size
    Stats stats_ = {};
};

} // namespace ring_torch

#endif
