#include "metrics/log/log.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <nlohmann/json.hpp>

#include "consumer/trace/trace_context.h"
#include "locking/base/control_text.h"
#include "locking/base/time_text.h"

namespace fencepost::metrics {
namespace {

// By Severity.
constexpr std::string_view kNames[] = {"debug", "info", "warn", "error"};
constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                 spdlog::level::warn, spdlog::level::err};
constexpr std::size_t kQueuedLines = 1024;

// What a pipeline, or a part of it, has become. Each is written, behind what was held back of the
// pipeline: so the log's last word is how things are.
constexpr std::array<std::string_view, 8> kStates{
    "handler_available", "not_ready", "output_available", "paused", "ready",
    "resumed",           "stopped",   "stopping"};

// Keeps an event on one line, whatever a broker or a server put into its error text.
std::string OneLine(std::string_view text) {
  std::string line;
  for (std::size_t at = 0, size = 1; at < text.size(); at += size) {
    const std::size_t control = ControlSize(text.substr(at));
    size = std::max<std::size_t>(control, 1);
    if (control == 0) line += text[at];
    if (control == 1) line += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    if (control == 2) line += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[at + 1]));
  }
  return line;
}

void AddFields(const consumer::AboutRecord& record, nlohmann::ordered_json& json) {
  json["topic"] = record.where.topic;
  json["partition"] = record.where.partition;
  json["offset"] = record.offset;
  if (!record.record_id.empty()) json["record_id"] = record.record_id;
  if (record.token != 0) json["token"] = record.token;
  if (record.attempt > 0) json["attempt"] = record.attempt;
  if (!record.trace.there()) return;
  json["trace_id"] = consumer::TraceIdText(record.trace);
  json["span_id"] = consumer::SpanIdText(record.trace.span);
}

// " topic=orders partition=3 …"; a value with blanks, quotes or an equals sign is quoted.
std::string FieldsText(const consumer::AboutRecord& record) {
  nlohmann::ordered_json json;
  AddFields(record, json);
  std::string text;
  for (const auto& [name, value] : json.items()) {
    std::string shown =
        value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    if (value.is_string()) {
      const std::string raw = shown.substr(1, shown.size() - 2);
      if (raw.find_first_of(" =\\") == std::string::npos) shown = raw;
    }
    text += fmt::format(" {}={}", name, shown);
  }
  return text;
}

}  // namespace

LogOptions LogOptionsOf(const consumer::ObserveOptions& observe, const std::string& worker) {
  LogOptions options;
  options.worker = worker;
  options.level = SeverityFromName(observe.log_level).value_or(Severity::kInfo);
  options.format = observe.log_format == "text" ? LogFormat::kText : LogFormat::kJson;
  return options;
}

std::optional<Severity> SeverityFromName(std::string_view name) {
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Severity>(found - std::begin(kNames));
}

std::string_view SeverityName(Severity severity) {
  return kNames[static_cast<std::size_t>(severity)];
}

Log::Log(LogOptions options) : options_(std::move(options)), level_(options_.level) {
  spdlog::sink_ptr sink = options_.sink;
  if (!sink) sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  pool_ = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1);
  logger_ = std::make_shared<spdlog::async_logger>("fencepost", std::move(sink), pool_,
                                                   spdlog::async_overflow_policy::overrun_oldest);
  logger_->set_pattern("%v");
  logger_->set_level(kLevels[0]);                         // level_ decides
  logger_->set_error_handler([](const std::string&) {});  // a log that cannot be written is lost
}

Log::~Log() {
  try {
    const std::lock_guard lock(mutex_);
    TellRepeatsLocked(ReadClock(), true);
  } catch (...) {  // destructors do not throw; the summary is lost
  }
}

locking::Now Log::ReadClock() const {
  return options_.clock ? options_.clock() : locking::ReadClocks();
}

void Log::WriteHeldBack() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    TellRepeatsLocked(ReadClock(), false);
  } catch (...) {  // out of memory: the line is lost, the work goes on
  }
}

void Log::SetLevel(Severity level) { level_ = level; }

void Log::WriteLine(Severity severity, std::string_view pipeline, std::string_view event,
                    std::string_view text, const consumer::AboutRecord* record) noexcept {
  if (severity < std::min(level_.load(), Severity::kWarn)) return;
  try {
    Line line{severity, std::string(pipeline), std::string(event), std::string(text)};
    Record about = record == nullptr ? std::nullopt : Record(*record);
    const std::lock_guard lock(mutex_);
    WriteLocked(std::move(line), std::move(about), ReadClock());
  } catch (...) {  // out of memory: the line is lost, the work goes on
  }
}

void Log::WriteLocked(Line line, Record record, locking::Now now) {
  if (line.severity >= Severity::kWarn) {
    last_.Keep(line.severity, line.pipeline, line.event, line.text, TextOf(line, record),
               now.wall.time_since_epoch());
  }
  if (line.severity < level_ || std::ranges::count(options_.muted, line.event) > 0) return;
  std::uint64_t suppressed = 0;
  const bool state = std::ranges::find(kStates, line.event) != kStates.end();
  if (state) TellHeldBackLocked(line.pipeline);
  if (const auto seen = seen_.find(line); seen != seen_.end()) {
    if (now.boot - seen->second.since < kRepeatAfter) {
      ++seen->second.suppressed;
      seen->second.last = now.wall;
      seen->second.record = std::move(record);
      return;
    }
    suppressed = seen->second.suppressed;
    seen_.erase(seen);
  }
  TellRepeatsLocked(now, false);
  if (HeldBackLocked(line, record, now)) {
    // What was held back of this very text goes with the flood.
    FloodOf(line).held_back.suppressed += suppressed;
    return;
  }
  EmitLocked(line, record, suppressed, now.wall);
  if (!state && seen_.size() < kRemembered) {
    seen_.emplace(std::move(line), Repeats{now.boot, now.wall, 0, std::move(record)});
  }
}

Log::Flood& Log::FloodOf(const Line& line) {
  return events_[Line{line.severity, line.pipeline, line.event, ""}];
}

// Ten lines a second of one event are enough.
bool Log::HeldBackLocked(const Line& line, const Record& record, locking::Now now) {
  Flood& flood = FloodOf(line);
  if (flood.lines == 0) flood.since = now.boot;
  if (flood.lines < kLinesPerEvent) {
    ++flood.lines;
    return false;
  }
  ++flood.held_back.suppressed;
  flood.held_back.last = now.wall;
  flood.held_back.record = record;
  flood.text = line.text;
  return true;
}

// What was held back of this pipeline so far.
void Log::TellHeldBackLocked(std::string_view pipeline) {
  const auto tell = [&](const Line& line, Repeats& held) {
    if (line.pipeline != pipeline || held.suppressed == 0) return;
    EmitLocked(line, held.record, held.suppressed - 1, held.last);
    held.suppressed = 0;
  };
  for (auto& [line, held] : seen_) tell(line, held);
  for (auto& [about, flood] : events_) {
    Line line = about;
    line.text = flood.text;
    tell(line, flood.held_back);
  }
}

// Forgets texts whose ten seconds are over. What was held back and did not come again since is told
// by one more line, at the time of the last one.
void Log::TellRepeatsLocked(locking::Now now, bool all) {
  if (!all && now.boot < next_look_) return;
  const auto over = [&](locking::Instant since) { return all || now.boot - since >= kRepeatAfter; };
  const auto tell = [this](const Line& line, const Repeats& held) {
    if (held.suppressed > 0) EmitLocked(line, held.record, held.suppressed - 1, held.last);
  };
  std::erase_if(seen_, [&](const auto& seen) {
    if (!over(seen.second.since)) return false;
    tell(seen.first, seen.second);
    return true;
  });
  std::erase_if(events_, [&](const auto& event) {
    if (!over(event.second.since)) return false;
    Line line = event.first;
    line.text = event.second.text;
    tell(line, event.second.held_back);
    return true;
  });
  next_look_ = now.boot + std::chrono::seconds(1);
}

void Log::EmitLocked(const Line& line, const Record& record, std::uint64_t suppressed,
                     locking::WallTime wall) {
  logger_->log(kLevels[static_cast<std::size_t>(line.severity)],
               spdlog::string_view_t(Render(line, record, suppressed, wall)));
}

std::string Log::TextOf(const Line& line, const Record& record) {
  if (!record) return line.text;
  return consumer::SourceText(record->where, record->offset) + ": " + line.text;
}

std::string Log::Render(const Line& line, const Record& record, std::uint64_t suppressed,
                        locking::WallTime wall) const {
  const std::string time = Rfc3339(wall.time_since_epoch());
  if (options_.format == LogFormat::kText) {
    const std::string repeats =
        suppressed > 0 ? fmt::format(" (and {} more like it before)", suppressed) : "";
    return fmt::format("{} {:<5} {}{}{}: {}{}{}", time, SeverityName(line.severity), line.pipeline,
                       line.pipeline.empty() ? "" : " ", line.event, OneLine(TextOf(line, record)),
                       record ? FieldsText(*record) : "", repeats);
  }
  nlohmann::ordered_json json = {{"time", time},
                                 {"level", SeverityName(line.severity)},
                                 {"event", line.event},
                                 {"pipeline", line.pipeline},
                                 {"worker", options_.worker}};
  if (record) AddFields(*record, json);
  json["text"] = TextOf(line, record);
  if (suppressed > 0) json["suppressed"] = suppressed;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<consumer::ErrorStatus> Log::LastErrors(std::string_view pipeline) const {
  const std::lock_guard lock(mutex_);
  return last_.Of(pipeline);
}

}  // namespace fencepost::metrics
