// SPDX-License-Identifier: Apache-2.0
// Caches blocks of ring_mem_alloc() for later requests, because an allocation of libring touches
// every page, which costs a millisecond a MiB.
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

/// Segments of ring_mem_alloc(), each cut into blocks that are used or free. A request takes the
/// smallest free block that is large enough; a block given back merges with free neighbours. Small
/// requests share segments, so that they do not cut up those of large ones. Thread-safe.
///
/// A forked child does not have this memory: it gets no blocks, and returning one has no effect.
class BlockCache
{
  public:
    struct Stats {
        size_t reserved;      // bytes of all segments
        size_t used;          // bytes of the blocks in use
        uint64_t requests;    // blocks given out, ever
        uint64_t allocations; // calls of ring_mem_alloc() among them
        uint64_t refusals;    // requests that found no shared memory
    };

    /// The cache of this process. It is never destroyed, because tensors may outlive everything
    /// else.
    static BlockCache &get();

    /// Returns a block of at least `bytes`, aligned to a cache line, not zeroed. Null: no shared
    /// memory is left, or this is a forked child.
    void *take(size_t bytes);
    /// False: `memory` is not a block of take() here or in a parent process.
    bool give_back(void *memory);
    /// Whether the memory is in one of the segments.
    bool holds(const void *memory);
    /// Returns the segments that are completely free to the system.
    void empty();
    Stats stats();

  private:
    enum Kind { small, large };
    struct Block {
        size_t bytes;
        char *segment;
        Kind kind; // of the requests that the segment is for
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
    std::map<char *, size_t> segments_; // their bytes
    Blocks blocks_;
    std::set<std::pair<size_t, char *>> free_[2]; // of each kind, by size
    Stats stats_ = {};
};

} // namespace ring_torch

#endif
