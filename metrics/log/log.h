// The log: one line an event on stderr, as JSON or as text. What an event says of one record
// (topic, partition, offset, record_id, token, attempt, trace_id, span_id) are fields of their own.
// The last errors and warnings of each pipeline are kept for /status, whatever the log's level.
// Names of events: EVENTS.md.
//
// Repeats are held back for ten seconds: the same event with the same text, of whatever record; and
// of one event with ever different texts (as those of 10,000 bad records are) what comes after the
// first hundred. `suppressed` in a line says how many like it were held back before it, so that
// lines and their `suppressed` add up to what happened. A line of what was held back has the time
// at which it came last. A change of state (ready, stopped, …) is written each time, behind it.
//
// Thread-safe. Write does not block on stderr: lines go through a bounded queue to a thread that
// the Log owns; when stderr is stalled, the oldest lines in the queue are dropped. It never
// throws.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <spdlog/common.h>

#include "consumer/pipeline/observer.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/status.h"
#include "locking/base/types.h"
#include "locking/core/observer.h"
#include "metrics/log/last_events.h"

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace fencepost::metrics {

using locking::Severity;

// debug, info, warn, error; nothing for another word.
std::optional<Severity> SeverityFromName(std::string_view name);
std::string_view SeverityName(Severity severity);

enum class LogFormat : std::uint8_t { kJson, kText };

struct LogOptions {
  std::string worker;
  Severity level = Severity::kInfo;  // what is less severe is not written
  LogFormat format = LogFormat::kJson;
  std::vector<std::string_view> muted{};  // events that are not written, whatever the level
  spdlog::sink_ptr sink;                  // nullptr: stderr
  std::function<locking::Now()> clock;    // empty: locking::ReadClocks
};

// As the file says.
LogOptions LogOptionsOf(const consumer::ObserveOptions& observe, const std::string& worker);

class Log {
 public:
  static constexpr std::chrono::seconds kRepeatAfter{10};
  static constexpr std::size_t kRemembered = 1024;  // texts whose repeats are held back at a time
  static constexpr int kLinesPerEvent = 100;        // of one event, in kRepeatAfter

  explicit Log(LogOptions options);
  ~Log();  // writes what is queued, and how many repeats were held back
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // `pipeline` is empty for what concerns the whole process.
  void Write(Severity severity, std::string_view pipeline, std::string_view event,
             std::string_view text) noexcept {
    WriteLine(severity, pipeline, event, text, nullptr);
  }
  // Of one record. `text` does not name it: the line does.
  void Write(Severity severity, std::string_view pipeline, std::string_view event,
             std::string_view text, const consumer::AboutRecord& record) noexcept {
    WriteLine(severity, pipeline, event, text, &record);
  }

  // About once a second: what was held back, once its ten seconds are over.
  void WriteHeldBack() noexcept;

  void SetLevel(Severity level);

  // With the warnings: last_events.h.
  [[nodiscard]] std::vector<consumer::ErrorStatus> LastErrors(std::string_view pipeline) const;

 private:
  using Record = std::optional<consumer::AboutRecord>;
  struct Line {
    Severity severity = Severity::kInfo;
    std::string pipeline, event, text;
    auto operator<=>(const Line&) const = default;
  };
  struct Repeats {
    locking::Instant since;  // when it was written
    locking::WallTime last;  // when it came last
    std::uint64_t suppressed = 0;
    Record record;  // the last one
  };
  // One event, whatever its text.
  struct Flood {
    locking::Instant since;
    int lines = 0;
    Repeats held_back{};  // beyond kLinesPerEvent
    std::string text{};   // of the last one
  };

  void WriteLine(Severity severity, std::string_view pipeline, std::string_view event,
                 std::string_view text, const consumer::AboutRecord* record) noexcept;
  [[nodiscard]] locking::Now ReadClock() const;
  void WriteLocked(Line line, Record record, locking::Now now);
  [[nodiscard]] bool HeldBackLocked(const Line& line, const Record& record, locking::Now now);
  Flood& FloodOf(const Line& line);
  static std::string TextOf(const Line& line, const Record& record);
  void TellHeldBackLocked(std::string_view pipeline);
  void TellRepeatsLocked(locking::Now now, bool all);
  void EmitLocked(const Line& line, const Record& record, std::uint64_t suppressed,
                  locking::WallTime wall);
  [[nodiscard]] std::string Render(const Line& line, const Record& record, std::uint64_t suppressed,
                                   locking::WallTime wall) const;

  const LogOptions options_;
  std::atomic<Severity> level_;
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  std::shared_ptr<spdlog::logger> logger_;

  mutable std::mutex mutex_;  // guards what follows
  std::map<Line, Repeats> seen_;
  std::map<Line, Flood> events_;  // by a line without its text
  locking::Instant next_look_{};  // when the repeats are looked through again
  LastEvents last_;
};

}  // namespace fencepost::metrics
