// The log: one line an event on stderr, as JSON or as text, with the same event and text at most
// once in ten seconds: `suppressed` in a line says how many like it were held back before it, so
// that lines and their `suppressed` add up to what happened. The last errors of each pipeline are
// kept for /status.
//
// Thread-safe. Write does not block on stderr: lines go through a bounded queue to a thread that
// the Log owns; when stderr stands still, the oldest lines in the queue are dropped. It never
// throws.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <spdlog/common.h>

#include "consumer/status.h"
#include "locking/core/observer.h"
#include "locking/core/types.h"

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

// "2026-11-21T03:21:00.123Z"
std::string Rfc3339(std::chrono::milliseconds unix_time);

enum class LogFormat : std::uint8_t { kJson, kText };

struct LogOptions {
  std::string worker;
  Severity level = Severity::kInfo;  // what is less severe is not written
  LogFormat format = LogFormat::kJson;
  spdlog::sink_ptr sink;                // nullptr: stderr
  std::function<locking::Now()> clock;  // empty: locking::ReadClocks
};

class Log {
 public:
  static constexpr std::chrono::seconds kRepeatAfter{10};
  static constexpr std::size_t kLastErrors = 20;    // a pipeline
  static constexpr std::size_t kRemembered = 1024;  // texts whose repeats are held back at a time

  explicit Log(LogOptions options);
  ~Log();  // writes what is queued, and how many repeats were held back
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // `pipeline` is empty for what concerns the whole process.
  void Write(Severity severity, std::string_view pipeline, std::string_view event,
             std::string_view text) noexcept;

  [[nodiscard]] std::vector<consumer::ErrorStatus> LastErrors(std::string_view pipeline) const;

 private:
  struct Line {
    Severity severity = Severity::kInfo;
    std::string pipeline, event, text;
    auto operator<=>(const Line&) const = default;
  };
  struct Repeats {
    locking::Instant since;  // when it was written
    locking::WallTime last;  // when it came last
    std::uint64_t suppressed = 0;
  };

  void WriteLocked(Line line, locking::Now now);
  void TellRepeatsLocked(locking::Now now, bool all);
  void EmitLocked(const Line& line, std::uint64_t suppressed, locking::WallTime wall);
  [[nodiscard]] std::string Render(const Line& line, std::uint64_t suppressed,
                                   locking::WallTime wall) const;

  const LogOptions options_;
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  std::shared_ptr<spdlog::logger> logger_;

  mutable std::mutex mutex_;  // guards what follows
  std::map<Line, Repeats> seen_;
  locking::Instant next_look_{};  // when the repeats are looked through again
  std::map<std::string, std::deque<consumer::ErrorStatus>, std::less<>> errors_;
};

}  // namespace fencepost::metrics
