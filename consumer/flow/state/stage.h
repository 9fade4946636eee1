// The stages of a record on its way, as one table: what holds in each of them, and which of them it
// may follow. The order of the enum means nothing; a property of a stage is asked of the
// table. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fencepost::consumer {

enum class Stage : std::uint8_t {
  kUnused,
  kQueued,    // waits for its place in the chain (or for Acquire to be worth it)
  kWithheld,  // bad, and its dead letter waits for any record to take effect (DeadLetterLimiter)
  kWaitingForSameId,      // waits for another record here with the same id
  kLocking,               // the lock is being acquired
  kGranted,               // leased, but a record before it in its chain is not yet
  kLookup,                // the ledger is asked for its id
  kWaiting,               // waits for its turn at the handler
  kHandling,              // a handler call is out
  kRetrying,              // handler or output failed; waits for the next attempt
  kInDoubt,               // no effect, as it looks; a write of it may still be committed
  kHandled,               // handled, but a record before it is not
  kReady,                 // may be written
  kWriting,               // handed to the output
  kPublishingDeadLetter,  // handed to the dead letter publisher
  kBlocked,               // the pipeline stops: it holds the watermark
  kFinished,
};

// What holds in a stage.
enum class Fact : std::uint8_t {
  // Leased or found DONE (LockUnit), and everything before it in its chain too.
  kInLeasedPrefix = 1,
  kWaitsForPrefix = 2,  // what it does next depends on the leases before it in its chain
  kMayGiveBack = 4,     // it holds or asks for a lease, and can do without
  kBegun = 8,           // the handler or the output has it, or had it under this lease
  // Handed to the output or to the dead letter publisher: the answer decides, whatever becomes of
  // its lease.
  kPinned = 16,
  kAwaitsTime = 32,  // nothing of it is out: it goes on when its time has come
};
constexpr unsigned operator|(Fact a, Fact b) {
  return static_cast<unsigned>(a) | static_cast<unsigned>(b);
}
constexpr unsigned operator|(unsigned a, Fact b) { return a | static_cast<unsigned>(b); }

struct StageRow {
  Stage stage;
  std::string_view name;  // as the status, the log and /status say it
  unsigned facts;
  unsigned after;  // the stages that it may follow, a bit each
};

inline constexpr std::array kStages = [] {
  using enum Stage;
  using enum Fact;
  constexpr auto after = [](auto... stages) {
    return (0u | ... | (1u << static_cast<unsigned>(stages)));
  };
  constexpr unsigned any = ~after(kUnused, kFinished);
  // clang-format off
  return std::array{
      StageRow{kUnused, "unused", 0, after(kFinished)},
      StageRow{kQueued, "queued", 0 | kWaitsForPrefix, (any & ~after(kBlocked)) | after(kUnused)},
      StageRow{kWithheld, "bad, waiting for any record to take effect", 0, after(kQueued)},
      StageRow{kWaitingForSameId, "waiting for a record with the same id", 0, after(kQueued)},
      StageRow{kLocking, "locking", kWaitsForPrefix | kMayGiveBack, after(kQueued)},
      // After those behind it in this table when its lease is gone.
      StageRow{kGranted, "leased, waiting for its order", kWaitsForPrefix | kMayGiveBack,
               after(kQueued, kLocking, kGranted, kLookup, kWaiting, kHandling, kRetrying, kInDoubt,
                     kHandled, kReady)},
      StageRow{kLookup, "looked up in the ledger", kInLeasedPrefix | kMayGiveBack,
               after(kLocking, kGranted, kLookup, kHandling, kInDoubt, kWriting)},
      StageRow{kWaiting, "waiting for the handler", kInLeasedPrefix | kMayGiveBack,
               after(kLocking, kGranted, kLookup, kRetrying)},
      StageRow{kHandling, "handling", kInLeasedPrefix | kMayGiveBack | kBegun, after(kWaiting)},
      StageRow{kRetrying, "waiting for the next attempt",
               kInLeasedPrefix | kMayGiveBack | kAwaitsTime, after(kHandling, kWriting)},
      StageRow{kInDoubt, "waiting until the ledger can tell whether it is done",
               kInLeasedPrefix | kMayGiveBack | kAwaitsTime,
               after(kLocking, kGranted, kLookup, kHandling, kWriting)},
      StageRow{kHandled, "handled, waiting for its order", kInLeasedPrefix | kMayGiveBack | kBegun,
               after(kQueued, kLocking, kGranted, kLookup, kHandling, kRetrying, kReady, kWriting,
                     kPublishingDeadLetter)},
      StageRow{kReady, "ready to be written", kInLeasedPrefix | kMayGiveBack | kBegun,
               after(kHandled)},
      StageRow{kWriting, "writing", kInLeasedPrefix | kBegun | kPinned, after(kReady)},
      StageRow{kPublishingDeadLetter, "publishing as a dead letter",
               kInLeasedPrefix | kBegun | kPinned,
               after(kQueued, kLocking, kGranted, kLookup, kHandling, kWriting)},
      StageRow{kBlocked, "blocked", 0, any & ~after(kBlocked)},
      StageRow{kFinished, "finished", 0 | kInLeasedPrefix, any},
  };
  // clang-format on
}();

constexpr const StageRow& RowOf(Stage stage) { return kStages[static_cast<std::size_t>(stage)]; }
static_assert([] {
  for (std::size_t i = 0; i < kStages.size(); ++i) {
    if (kStages[i].stage != static_cast<Stage>(i)) return false;
  }
  return kStages.size() == static_cast<std::size_t>(Stage::kFinished) + 1;
}());

constexpr std::string_view StageName(Stage stage) { return RowOf(stage).name; }
constexpr bool MayFollow(Stage stage, Stage before) {
  return (RowOf(stage).after >> static_cast<unsigned>(before) & 1u) != 0;
}
constexpr bool Is(Stage stage, Fact fact) {
  return (RowOf(stage).facts & static_cast<unsigned>(fact)) != 0;
}
constexpr bool InLeasedPrefix(Stage stage) { return Is(stage, Fact::kInLeasedPrefix); }
constexpr bool WaitsForPrefix(Stage stage) { return Is(stage, Fact::kWaitsForPrefix); }
constexpr bool MayGiveBack(Stage stage) { return Is(stage, Fact::kMayGiveBack); }
constexpr bool Begun(Stage stage) { return Is(stage, Fact::kBegun); }
constexpr bool Pinned(Stage stage) { return Is(stage, Fact::kPinned); }
constexpr bool AwaitsTime(Stage stage) { return Is(stage, Fact::kAwaitsTime); }

}  // namespace fencepost::consumer
