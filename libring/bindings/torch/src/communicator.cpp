// SPDX-License-Identifier: Apache-2.0
// Joins communicators with an id from c10d's store, and counts the uses of a communicator so that
// it can be destroyed safely. Python.h must be included before all other headers.
#include <Python.h>

#include "communicator.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <random>

#include <c10/util/Exception.h>

namespace ring_torch
{

namespace
{

// Ranks agree on an id through the store. The store may contain keys of earlier attempts that were
// killed before all ranks had taken part, so the agreement uses no counters. Rank 0 publishes an
// offer, which contains the id and a random name, and each other rank confirms that it has read
// this offer. When all ranks have confirmed it, rank 0 withdraws the offer and lets them start. If
// there is an offer of an earlier attempt, rank 0 replaces it and redirects the ranks that have
// confirmed the old offer to the new one.
const std::string offer_key = "ring/offer";

std::string attempt_key(const std::string &attempt, const std::string &of)
{
    return "ring/" + attempt + "/" + of;
}

struct Offer {
    std::string attempt; // the random name: 16 hexadecimal digits
    ring_unique_id id;
};

Offer read_offer(c10d::Store &store)
{
    constexpr size_t digits = 16;
    Offer offer;
    const std::vector<uint8_t> bytes = store.get(offer_key);
    TORCH_CHECK(bytes.size() == digits + sizeof offer.id.bytes, "the id in the store has ",
                bytes.size(), " bytes instead of ", digits + sizeof offer.id.bytes,
                "; install the same version of libring-torch for all ranks");
    offer.attempt.assign(bytes.begin(), bytes.begin() + digits);
    std::copy(bytes.begin() + digits, bytes.end(), offer.id.bytes);
    return offer;
}

Offer draw_offer()
{
    Offer offer;
    check(ring_get_unique_id(&offer.id));
    std::random_device draw;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%08x%08x", draw(), draw());
    offer.attempt = digits;
    return offer;
}

// The longest wait for the other ranks. The clock would overflow after 292 years.
constexpr std::chrono::milliseconds century = std::chrono::years(100);

/// One rank's part in the agreement on an id.
class Meeting
{
    void wait_for(const std::string &key)
    {
        using namespace std::chrono;
        const auto left = duration_cast<milliseconds>(deadline_ - steady_clock::now());
        store_.wait({key}, std::max(left, 1ms));
    }

    /// Executes a step that uses the store. If the store throws an error, throws one that also
    /// names this rank and the failure `what`.
    template <class Function> auto step(const std::string &what, Function &&function)
    {
        try {
            return function();
        } catch (const c10::Error &error) {
            C10_THROW_ERROR(DistBackendError, c10::str("ring: init of rank ", rank_, " of ", size_,
                                                       ": ", what, " within ", timeout_.count(),
                                                       " ms: ", error.what_without_backtrace()));
        }
    }

  public:
    Meeting(c10d::Store &store, int rank, int size, std::chrono::milliseconds timeout)
        : store_(store), rank_(rank), size_(size), timeout_(timeout),
          deadline_(std::chrono::steady_clock::now() + std::min(timeout, century))
    {
    }

    /// The part of rank 0. Returns when all other ranks have confirmed the offer.
    Offer lead()
    {
        const Offer offer = draw_offer();
        step("the store did not accept the address of this rank", [&] {
            const std::string replaced = store_.check({offer_key}) ? read_offer(store_).attempt
                                                                   : std::string();
            std::vector<uint8_t> bytes(offer.attempt.begin(), offer.attempt.end());
            bytes.insert(bytes.end(), std::begin(offer.id.bytes), std::end(offer.id.bytes));
            store_.set(offer_key, bytes);
            if (!replaced.empty())
                store_.set(attempt_key(replaced, "start"), std::vector<uint8_t>{'0'});
        });
        for (int rank = 1; rank < size_; rank++)
            step(c10::str("rank ", rank, " did not confirm in the store that it has started"),
                 [&] { wait_for(attempt_key(offer.attempt, std::to_string(rank))); });
        step("the store did not answer", [&] {
            store_.deleteKey(offer_key);
            store_.set(attempt_key(offer.attempt, "start"), std::vector<uint8_t>{'1'});
        });
        return offer;
    }

    /// The part of each other rank. Returns when rank 0 lets it start.
    Offer follow()
    {
        for (;;) {
            const Offer offer = step("rank 0 did not put its address into the store", [&] {
                wait_for(offer_key);
                return read_offer(store_);
            });
            const std::string start = attempt_key(offer.attempt, "start");
            const bool starts = step("some rank did not confirm in the store that it has started",
                                     [&] {
                                         store_.set(attempt_key(offer.attempt,
                                                                std::to_string(rank_)),
                                                    std::vector<uint8_t>{'1'});
                                         wait_for(start);
                                         return store_.get(start) == std::vector<uint8_t>{'1'};
                                     });
            if (starts)
                return offer;
        }
    }

    /// Deletes this rank's key. Called after all ranks have joined, when no rank reads the key any
    /// more.
    void end(const Offer &offer)
    {
        store_.deleteKey(attempt_key(offer.attempt, rank_ == 0 ? "start" : std::to_string(rank_)));
    }

  private:
    c10d::Store &store_;
    const int rank_, size_;
    const std::chrono::milliseconds timeout_;
    const std::chrono::steady_clock::time_point deadline_;
};

/// Executes `step` without the interpreter's lock, so that other Python threads can run while
/// libring waits.
template <class Function> void without_interpreter(Function &&step)
{
    if (!Py_IsInitialized() || !PyGILState_Check()) {
        step();
        return;
    }
    PyThreadState *state = PyEval_SaveThread();
    step();
    PyEval_RestoreThread(state);
}

} // namespace

void check(ring_status status)
{
    if (status == RING_OK)
        return;
    const char *text = ring_last_error(nullptr); // this thread's error: rank, host, call and cause
    C10_THROW_ERROR(DistBackendError,
                    std::string(status == RING_ERR_TIMEOUT ? "ring: Timed out waiting: "
                                                           : "ring: ") +
                        (*text ? text : ring_status_string(status)));
}

std::shared_ptr<Communicator> Communicator::join(c10d::Store &store, int rank, int size,
                                                 std::chrono::milliseconds timeout)
{
    Meeting meeting(store, rank, size, timeout);
    const Offer offer = rank == 0 ? meeting.lead() : meeting.follow();
    char digits[32] = {}; // std::to_chars() writes a decimal point in every locale
    std::to_chars(digits, digits + sizeof digits, std::chrono::duration<double>(timeout).count());
    const std::string seconds = digits;
    const std::string patience = "RING_TIMEOUT=" + seconds,
                      joining = "RING_INIT_TIMEOUT=" + seconds;
    const char *settings[] = {patience.c_str(), joining.c_str(), nullptr};
    ring_config config = RING_CONFIG_INIT;
    config.settings = settings;
    config.quiet = 1; // nothing is logged, because check() throws the error
    ring_comm *comm = nullptr;
    check(ring_comm_init_config(&comm, size, &offer.id, rank, &config));
    meeting.end(offer);
    return std::make_shared<Communicator>(comm);
}

bool Communicator::begin_use(bool lasts)
{
    lasting_ += lasts;
    uses_++;
    if (!destroyed_)
        return true;
    end_use(lasts);
    return false;
}

void Communicator::end_use(bool lasts)
{
    lasting_ -= lasts;
    uses_--;
    if (destroyed_)
        uses_.notify_all();
}

Communicator::Use::Use(std::shared_ptr<Communicator> of) : of_(std::move(of))
{
    if (!of_->begin_use(true))
        C10_THROW_ERROR(DistBackendError, "ring: the process group has been shut down");
}

Communicator::Use::~Use()
{
    of_->end_use(true);
}

Communicator::HandleUse::HandleUse(Communicator &of, bool waits)
    : of_(of), waits_(waits), counted_(of.begin_use(waits))
{
    if (!counted_)
        of_.gone_.wait(false);
}

Communicator::HandleUse::~HandleUse()
{
    if (counted_)
        of_.end_use(waits_);
}

void Communicator::destroy()
{
    if (!owner_.is_this_process() || destroyed_.exchange(true))
        return;
    without_interpreter([this] {
        if (lasting_ > 0)
            ring_comm_abort(comm_, "the process group was shut down during the call");
        for (int uses; (uses = uses_) > 0;)
            uses_.wait(uses);
        ring_comm_destroy(comm_);
        gone_ = true;
        gone_.notify_all();
    });
    std::lock_guard lock(mutex_);
    kept_.clear();
}

void Communicator::keep(CallBuffers &&buffers)
{
    std::lock_guard lock(mutex_);
    if (!destroyed_)
        kept_.push_back(std::move(buffers));
}

} // namespace ring_torch
