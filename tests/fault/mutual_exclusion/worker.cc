#include "tests/fault/mutual_exclusion/worker.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "tests/fault/mutual_exclusion/journal.h"
#include "tests/fault/mutual_exclusion/resource.h"

namespace fencepost::torture {
namespace {

using locking::BootClock;
using locking::Instant;
using locking::Lease;
using locking::Millis;
using locking::QuorumLock;
using Kind = Entry::Kind;

constexpr int kThreads = 2;
constexpr Millis kSlice{20};  // a thinking holder looks at its lease that often

std::atomic<bool> stop_asked{false};

std::int64_t Count(Instant at) { return at.time_since_epoch().count(); }

// A lease with its entries in the journal. Without a lock: what a worker without one would believe.
class Watched {
 public:
  Watched(const Journal& journal, std::uint32_t name, Instant asked, std::optional<Lease> lease)
      : journal_(journal), name_(name), asked_(asked), lease_(std::move(lease)) {
    made_up_until_ = BootClock::now() + kTtl;
    token_ = lease_ ? lease_->token().value() : static_cast<std::uint64_t>(Count(made_up_until_));
  }

  [[nodiscard]] std::uint64_t token() const { return token_; }
  // Whether it stands, and a line in the journal when that is news.
  bool Look() {
    if (over_) return false;
    const Instant until = lease_ ? lease_->valid_until() : made_up_until_;
    const Instant now = BootClock::now();
    if (now >= until) {
      over_ = true;
      if (seen_) Write(Kind::kLost, now, now);
      return false;
    }
    if (until != until_) Write(Kind::kHeld, now, until);
    until_ = until;
    seen_ = true;
    return true;
  }
  void GiveBack(bool wait) {
    if (Look()) Write(Kind::kReleasing, BootClock::now(), until_);
    if (lease_ && wait) lease_->Release();
    lease_.reset();
  }

 private:
  void Write(Kind kind, Instant at, Instant until) const {
    journal_.Write({kind, name_, token_, Count(at), Count(until), Count(asked_)});
  }

  const Journal& journal_;
  const std::uint32_t name_;
  const Instant asked_;
  std::optional<Lease> lease_;
  std::uint64_t token_ = 0;
  Instant made_up_until_;
  Instant until_ = Instant::min();
  bool seen_ = false;
  bool over_ = false;
};

class Hand {
 public:
  Hand(const WorkerOptions& options, QuorumLock* lock, const Journal& journal, int number)
      : lock_(lock),
        journal_(journal),
        resource_(options.resource),
        random_(options.seed * kThreads + static_cast<std::uint64_t>(number)),
        names_(options.names) {}

  void Work() {
    while (!stop_asked) Once();
  }

 private:
  int Draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  void Once() {
    const auto name = static_cast<std::uint32_t>(Draw(0, names_ - 1));
    std::optional<Lease> lease;
    const Instant asked = BootClock::now();
    if (lock_ != nullptr) {
      locking::AcquireOptions options;
      options.wait = Millis(Draw(0, 1500));
      options.watchdog = Draw(0, 3) != 0;
      auto got = lock_->Acquire(NameOf(static_cast<int>(name)), options);
      if (!got) return NoteFailure(name, got.error().code);
      lease = std::move(*got);
    }
    Watched watched(journal_, name, asked, std::move(lease));
    const int increments = Draw(1, 4);
    for (int i = 0; i < increments && watched.Look(); ++i) {
      if (!Increment(name, watched)) break;
    }
    watched.GiveBack(Draw(0, 1) == 0);
  }

  void NoteFailure(std::uint32_t name, const std::string& code) {
    const Kind kind = code == "contended"   ? Kind::kContended
                      : code == "no_quorum" ? Kind::kNoQuorum
                                            : Kind::kOtherError;
    journal_.Write({kind, name, 0, Count(BootClock::now()), 0});
  }

  // Nothing looks at the lease between thinking and writing: a process can be frozen after its last
  // look anyway, and so it happens often enough to be seen.
  bool Increment(std::uint32_t name, Watched& watched) {
    const std::uint64_t token = watched.token();
    using Ask = Request::Kind;
    const Answer plain = resource_.Ask({Ask::kRead, name, 0, token, 0});
    const Answer fenced = AskFenced({Ask::kRead, name, 1, token, 0});
    Think(watched);
    resource_.Ask({Ask::kWrite, name, 0, token, plain.value + 1});
    if (fenced.admitted == 0) return false;
    return AskFenced({Ask::kWrite, name, 1, token, fenced.value + 1}).admitted != 0;
  }

  Answer AskFenced(const Request& request) {
    const auto write = [&](Kind kind, std::int64_t value) {
      journal_.Write({kind, request.name, request.token, Count(BootClock::now()), 0, 0, value});
    };
    write(request.kind == Request::Kind::kRead ? Kind::kRead : Kind::kWrite, request.value);
    const Answer answer = resource_.Ask(request);
    write(answer.admitted != 0 ? Kind::kAdmitted : Kind::kRefused, answer.value);
    return answer;
  }

  // Mostly short; sometimes longer than a ttl, so that it needs the watchdog.
  void Think(Watched& watched) {
    const Millis span(Draw(0, 11) == 0 ? Draw(100, 900) : Draw(1, 15));
    const Instant end = BootClock::now() + span;
    for (Instant now = BootClock::now(); now < end && !stop_asked; now = BootClock::now()) {
      const auto rest = std::chrono::ceil<Millis>(end - now);
      (void)poll(nullptr, 0, static_cast<int>(std::min(rest, kSlice).count()));
      (void)watched.Look();
    }
  }

  QuorumLock* const lock_;
  const Journal& journal_;
  const ResourceClient resource_;
  std::mt19937_64 random_;
  const int names_;
};

WorkerOptions ParseCommand(const std::vector<std::string>& argv) {
  if (argv.size() != 6) throw std::runtime_error("worker: six words are needed");
  WorkerOptions options;
  std::istringstream nodes(argv[0]);
  for (std::string node; std::getline(nodes, node, ',');) options.nodes.push_back(node);
  options.resource = argv[1];
  options.journal = argv[2];
  options.seed = std::stoull(argv[3]);
  options.names = std::stoi(argv[4]);
  options.lawless = argv[5] == "lawless";
  return options;
}

}  // namespace

std::string NameOf(int name) { return fmt::format("name-{}", name); }

QuorumLock::Options LockOptionsFor(const std::vector<std::string>& nodes) {
  QuorumLock::Options options;
  options.redis.nodes = nodes;
  options.lock.ttl = kTtl;
  options.lock.max_ttl = kMaxTtl;
  options.lock.max_skew = kMaxSkew;
  options.lock.min_validity = Millis(100);
  options.lock.node_timeout = Millis(150);
  options.name_space = kNameSpace;
  options.creation = locking::StoreCreation::kQuarantined;  // kNever would fix nothing
  return options;
}

std::vector<std::string> WorkerCommand(const WorkerOptions& options) {
  return {"worker",
          fmt::format("{}", fmt::join(options.nodes, ",")),
          options.resource,
          options.journal,
          std::to_string(options.seed),
          std::to_string(options.names),
          options.lawless ? "lawless" : "lawful"};
}

int WorkerMain(const std::vector<std::string>& argv) {
  struct sigaction on_term {};
  on_term.sa_handler = [](int) { stop_asked = true; };
  on_term.sa_flags = SA_RESTART;  // a request to the resource goes on
  sigaction(SIGTERM, &on_term, nullptr);
  (void)std::fprintf(stderr, "%s\n", kCanBeStopped);
  try {
    const WorkerOptions options = ParseCommand(argv);
    const Journal journal(options.journal);
    std::unique_ptr<QuorumLock> lock;
    if (!options.lawless) {
      auto made = QuorumLock::Connect(LockOptionsFor(options.nodes));
      if (!made) throw std::runtime_error(made.error().Line());
      lock = std::move(*made);
    }
    std::vector<std::unique_ptr<Hand>> hands;
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      hands.push_back(std::make_unique<Hand>(options, lock.get(), journal, i));
    }
    for (const auto& hand : hands) threads.emplace_back([&hand] { hand->Work(); });
    threads.clear();
    return 0;
  } catch (const std::exception& e) {
    (void)std::fprintf(stderr, "worker: %s\n", e.what());
    return 1;
  }
}

}  // namespace fencepost::torture
