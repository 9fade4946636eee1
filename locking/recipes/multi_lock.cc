#include "locking/recipes/multi_lock.h"

#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "locking/recipes/budget.h"

namespace fencepost::locking {
namespace {

constexpr Millis kSlice{50};
using StopCallback = std::stop_callback<std::function<void()>>;

// A name that is asked for once, whatever its places in the list.
struct Item {
  QuorumLock* lock;
  std::string name;
};

// Passes on the first loss, and none from before the whole was had. Any thread.
class LossTeller {
 public:
  explicit LossTeller(std::function<void(const Error&)> on_lost) : on_lost_(std::move(on_lost)) {}

  void OnLost(const Error& why) {
    {
      const std::lock_guard guard(mutex_);
      if (!armed_ || std::exchange(told_, true)) return;
    }
    on_lost_(why);
  }
  // From now on, if all are valid. A lease that is lost later ends before it tells.
  bool Arm(const std::vector<Lease>& leases) {
    const std::lock_guard guard(mutex_);
    for (const Lease& lease : leases) {
      if (!lease.valid()) return false;
    }
    armed_ = true;
    return true;
  }

 private:
  const std::function<void(const Error&)> on_lost_;
  std::mutex mutex_;
  bool armed_ = false;
  bool told_ = false;
};

// Waiting may help; of "done", "refused", "cancelled" and "closed" it does not.
bool MayPass(const Error& error) {
  return error.code == "contended" || error.code == "no_quorum" || error.code == "too_late" ||
         error.code == "foreign";
}

// --- one AcquireMulti ----------------------------------------------------------------------------

class Attempt {
 public:
  Attempt(std::vector<Item> items, const AcquireOptions& options, const Budget& budget)
      : items_(std::move(items)),
        options_(options),
        budget_(budget),
        rounds_left_(options.tries > 0 ? options.tries : (budget.waits() ? -1 : 1)),
        leases_(items_.size()) {
    if (!options.on_lost) return;
    teller_ = std::make_shared<LossTeller>(options.on_lost);
    options_.on_lost = [teller = teller_](const Error& why) { teller->OnLost(why); };
  }

  tl::expected<std::vector<Lease>, Error> Run() {
    while (true) {
      const std::size_t from = GiveBackBehindTheFirstMissing();
      if (auto error = AskForTheRest(from)) return Fail(std::move(*error));
      const std::size_t missing = FirstMissing();
      if (missing == items_.size()) {
        if (auto error = Refresh()) return Fail(std::move(*error));
        const bool all_valid = FirstMissing() == items_.size();
        if (all_valid && (!teller_ || teller_->Arm(leases_))) return std::move(leases_);
        continue;  // one was lost at the last moment
      }
      GiveBackBehindTheFirstMissing();
      if (auto error = WaitFor(missing)) return Fail(std::move(*error));
    }
  }

 private:
  [[nodiscard]] std::size_t FirstMissing() const {
    std::size_t i = 0;
    while (i < leases_.size() && leases_[i].valid()) ++i;
    return i;
  }

  std::size_t GiveBackBehindTheFirstMissing() {
    const std::size_t missing = FirstMissing();
    Lease::ReleaseAll(std::span(leases_).subspan(missing));
    for (std::size_t i = missing; i < leases_.size(); ++i) leases_[i] = Lease();
    return missing;
  }

  // At once, a batch a QuorumLock. The error, if it cannot go on.
  std::optional<Error> AskForTheRest(std::size_t from) {
    AcquireOptions once = options_;
    once.wait = Millis(0);
    once.tries = 0;
    std::map<QuorumLock*, std::vector<std::size_t>> places;
    for (std::size_t i = from; i < items_.size(); ++i) places[items_[i].lock].push_back(i);
    using Results = std::vector<QuorumLock::Result>;
    std::vector<std::future<Results>> answers;
    for (const auto& [lock, indexes] : places) {
      std::vector<std::string> names;
      for (const std::size_t i : indexes) names.push_back(items_[i].name);
      const auto answer = std::make_shared<std::promise<Results>>();
      answers.push_back(answer->get_future());
      lock->AcquireAllAsync(std::move(names), once,
                            [answer](Results got) { answer->set_value(std::move(got)); });
    }
    std::map<std::size_t, Error> errors;
    auto answer = answers.begin();
    for (const auto& [lock, indexes] : places) {
      Results got = (answer++)->get();
      for (std::size_t k = 0; k < got.size(); ++k) {
        if (got[k]) leases_[indexes[k]] = std::move(*got[k]);
        if (!got[k]) errors.emplace(indexes[k], std::move(got[k].error()));
      }
    }
    for (const auto& [place, error] : errors) {
      if (!MayPass(error)) return error;
    }
    if (rounds_left_ > 0) --rounds_left_;
    const bool over = rounds_left_ == 0 || budget_.Over();
    return over && !errors.empty() ? std::optional(errors.begin()->second) : std::nullopt;
  }

  std::optional<Error> WaitFor(std::size_t missing) {
    AcquireOptions rest = options_;
    rest.wait = budget_.Left();
    rest.tries = std::max(rounds_left_, 0);
    auto lease = items_[missing].lock->Acquire(items_[missing].name, rest);
    if (!lease) return lease.error();
    leases_[missing] = std::move(*lease);
    return std::nullopt;
  }

  // Those that were had first may have waited long for the others.
  std::optional<Error> Refresh() {
    std::vector<std::size_t> places;
    std::vector<Lease> old;
    for (std::size_t i = 0; i < leases_.size(); ++i) {
      const Millis least = items_[i].lock->lock_options().MinValidity(options_.min_validity);
      if (leases_[i].valid_until() >= BootClock::now() + least) continue;
      places.push_back(i);
      old.push_back(std::move(leases_[i]));
    }
    const auto extended = Lease::ExtendAll(old);
    std::optional<Error> error;
    for (std::size_t k = 0; k < places.size(); ++k) {
      leases_[places[k]] = std::move(old[k]);
      if (!extended[k] && extended[k].error().code != "lost" && !error) error = extended[k].error();
    }
    return error;
  }

  tl::unexpected<Error> Fail(Error error) {
    Lease::ReleaseAll(leases_);
    return tl::unexpected(std::move(error));
  }

  const std::vector<Item> items_;
  AcquireOptions options_;
  const Budget& budget_;
  int rounds_left_;  // negative: no limit
  std::shared_ptr<LossTeller> teller_;
  std::vector<Lease> leases_;  // of items_; empty: missing
};

// The order that is the same in every process, and the place of each name in it.
tl::expected<std::vector<Item>, Error> InOrder(const std::vector<LockName>& names,
                                               const Budget& budget, const std::stop_token& cancel,
                                               std::vector<std::size_t>& place_of) {
  std::map<QuorumLock*, std::string> stores;
  for (const LockName& name : names) stores.emplace(&name.lock.get(), "");
  for (auto& [lock, id] : stores) {
    if (stores.size() == 1) break;  // one store: its name decides nothing
    // In slices, so that a cancel is heard.
    for (id = lock->StoreId(); id.empty(); id = lock->StoreId()) {
      if (cancel.stop_requested()) {
        return tl::unexpected(Error{"cancelled", "the attempt was cancelled", "", ""});
      }
      auto ready = lock->WaitReady(std::min(budget.Left(), kSlice));
      if (ready) continue;
      Error error = std::move(ready.error());
      if (error.code != "closed" && !budget.Over() && budget.waits()) continue;
      error.code = error.code == "closed" ? "closed" : "no_quorum";
      return tl::unexpected(std::move(error));
    }
  }
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::size_t>> order;
  for (std::size_t i = 0; i < names.size(); ++i) {
    QuorumLock* const lock = &names[i].lock.get();
    order[{stores.at(lock), lock->name_space(), names[i].name}].push_back(i);
  }
  place_of.resize(names.size());
  std::vector<Item> items;
  for (const auto& [key, places] : order) {
    for (const std::size_t place : places) place_of[place] = items.size();
    items.push_back({&names[places.front()].lock.get(), std::get<2>(key)});
  }
  return items;
}

}  // namespace

// --- what is held --------------------------------------------------------------------------------

struct MultiLease::Impl {
  std::vector<Lease> leases;
  std::vector<std::size_t> place_of;  // in leases, by the place asked for
  std::stop_source lost;
  std::vector<std::unique_ptr<StopCallback>> watches;
};

MultiLease::MultiLease(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MultiLease::~MultiLease() = default;
MultiLease::MultiLease(MultiLease&&) noexcept = default;
MultiLease& MultiLease::operator=(MultiLease&&) noexcept = default;

std::size_t MultiLease::size() const { return impl_ ? impl_->place_of.size() : 0; }

Token MultiLease::token(std::size_t i) const {
  return i < size() ? impl_->leases[impl_->place_of[i]].token() : Token();
}

bool MultiLease::valid() const { return BootClock::now() < valid_until(); }

Instant MultiLease::valid_until() const {
  if (!impl_) return Instant::min();
  Instant earliest = Instant::max();
  for (const Lease& lease : impl_->leases) earliest = std::min(earliest, lease.valid_until());
  return earliest;
}

std::stop_token MultiLease::stop_token() const {
  return impl_ ? impl_->lost.get_token() : Lease().stop_token();
}

tl::expected<void, Error> MultiLease::Extend() {
  if (!impl_) return tl::unexpected(Error{"ended", "an empty lease", "", ""});
  for (auto& extended : Lease::ExtendAll(impl_->leases)) {
    if (!extended) return std::move(extended);
  }
  return {};
}

std::vector<ReleaseOutcome> MultiLease::Release() {
  std::vector<ReleaseOutcome> outcomes;
  if (!impl_) return outcomes;
  const auto released = Lease::ReleaseAll(impl_->leases);
  for (const std::size_t place : impl_->place_of) outcomes.push_back(released[place]);
  return outcomes;
}

tl::expected<MultiLease, Error> AcquireMulti(const std::vector<LockName>& names,
                                             const AcquireOptions& options) {
  if (names.empty()) {
    return tl::unexpected(Error{"bad_options", "no name is listed", "", "list at least one"});
  }
  for (const LockName& name : names) name.lock.get().CheckMayBlock();
  const Budget budget(options);
  auto impl = std::make_unique<MultiLease::Impl>();
  auto items = InOrder(names, budget, options.cancel, impl->place_of);
  if (!items) return tl::unexpected(std::move(items.error()));
  auto leases = Attempt(std::move(*items), options, budget).Run();
  if (!leases) return tl::unexpected(std::move(leases.error()));
  impl->leases = std::move(*leases);
  for (const Lease& lease : impl->leases) {
    impl->watches.push_back(std::make_unique<StopCallback>(
        lease.stop_token(), [lost = impl->lost]() mutable { lost.request_stop(); }));
  }
  return MultiLease(std::move(impl));
}

}  // namespace fencepost::locking
