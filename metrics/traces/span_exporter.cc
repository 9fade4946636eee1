#include "metrics/traces/span_exporter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "consumer/record/text.h"
#include "locking/base/check.h"
#include "locking/base/random.h"

namespace fencepost::metrics {
namespace {

using locking::Severity;
using std::chrono::steady_clock;

constexpr std::chrono::minutes kTellAgain{1};

double Random() {  // in [0, 1)
  constexpr int kBits = 53;
  return static_cast<double>(locking::RandomBits() >> (64 - kBits)) /
         static_cast<double>(std::uint64_t{1} << kBits);
}

}  // namespace

std::unique_ptr<SpanExporter> SpanExporter::Start(ExportOptions options, const std::string& version,
                                                  const std::string& worker, SpanCells& cells,
                                                  Log* log) {
  std::unique_ptr<SpanExporter> exporter(
      new SpanExporter(std::move(options), version, worker, cells, log));
  exporter->thread_ = std::thread([self = exporter.get()] { self->Run(); });
  return exporter;
}

SpanExporter::SpanExporter(ExportOptions options, const std::string& version,
                           const std::string& worker, SpanCells& cells, Log* log)
    : options_(std::move(options)),
      shown_(ShownEndpoint(options_.traces.endpoint)),
      source_{.service = options_.traces.service,
              .version = version,
              .instance = worker,
              .attributes = options_.traces.resource},
      cells_(cells),
      log_(log),
      post_(options_, "fencepost/" + version),
      retry_(options_.backoff) {
  FENCEPOST_CHECK(options_.on(), "no endpoint");
  FENCEPOST_CHECK(options_.max_batch > 0 && options_.max_batch <= options_.max_queue, "max_batch");
}

SpanExporter::~SpanExporter() { Stop(); }

void SpanExporter::Put(std::vector<consumer::Span> spans) {
  if (spans.empty()) return;
  std::size_t taken = 0;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t before = queue_.size();
    const bool open = stop_at_ == Moment::max();
    taken = open ? std::min(spans.size(), options_.max_queue - before) : 0;
    std::move(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(taken),
              std::back_inserter(queue_));
    if (before == 0) oldest_ = steady_clock::now();
    wake = before == 0 || (before < options_.max_batch && queue_.size() >= options_.max_batch);
  }
  if (wake) changed_.notify_one();
  if (taken < spans.size()) {
    cells_.dropped.Add(static_cast<std::int64_t>(spans.size() - taken),
                       static_cast<int>(SpanDrop::kQueueFull));
  }
}

void SpanExporter::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_at_ = std::min(stop_at_, steady_clock::now() + kStopWithin);
  }
  changed_.notify_all();
  post_.Wake();
  if (thread_.joinable()) thread_.join();
}

void SpanExporter::Run() {
  for (Batch batch = Take(); !batch.empty(); batch = Take()) {
    Send(batch);
    TellOfFullQueue();
  }
}

// The next batch, once it is whole or its time has come; empty at the end.
SpanExporter::Batch SpanExporter::Take() {
  std::unique_lock lock(mutex_);
  const auto stops = [&] { return stop_at_ != Moment::max(); };
  for (;;) {
    if (stops()) break;
    const Moment now = steady_clock::now();
    Moment next = retry_.not_before();
    if (queue_.size() < options_.max_batch) next = std::max(next, oldest_ + options_.delay);
    if (queue_.empty()) {
      changed_.wait(lock);
    } else if (now < next) {
      changed_.wait_until(lock, next);
    } else {
      break;
    }
  }
  Batch batch;
  const std::size_t size = std::min(queue_.size(), options_.max_batch);
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(size);
  std::move(queue_.begin(), end, std::back_inserter(batch));
  queue_.erase(queue_.begin(), end);
  oldest_ = steady_clock::now();  // the others wait for more
  return batch;
}

void SpanExporter::Send(const Batch& batch) {
  const std::string body = TraceRequest(source_, batch);
  retry_.Begin(steady_clock::now());
  for (;;) {
    const TracePost::Answer answer = post_.Send(body, [this] { return StopMoment(); });
    const ExportRetry::Verdict verdict = ExportRetry::Judge(answer.status);
    if (verdict == ExportRetry::Verdict::kTaken) return OnTaken(batch, answer);
    if (verdict == ExportRetry::Verdict::kRefused) {
      Tell(
          Severity::kWarn, "traces_refused",
          fmt::format("{} answered HTTP {} to spans, which are dropped: check endpoint and headers "
                      "of observe.traces, or OTEL_EXPORTER_OTLP_*",
                      shown_, answer.status));
      return Drop(batch, SpanDrop::kRefused);
    }
    const bool again = retry_.Again(steady_clock::now(), answer.retry_after, Random());
    if (again && WaitBefore(retry_.not_before())) continue;
    Tell(Severity::kWarn, "traces_failed",
         fmt::format("{} took no spans, which are dropped: {}", shown_,
                     answer.status == 0 ? answer.problem : fmt::format("HTTP {}", answer.status)));
    return Drop(batch, SpanDrop::kFailed);
  }
}

void SpanExporter::OnTaken(const Batch& batch, const TracePost::Answer& answer) {
  const auto size = static_cast<std::int64_t>(batch.size());
  const TraceAnswer said = ReadTraceAnswer(answer.body).value_or(TraceAnswer());
  const std::int64_t rejected = std::clamp<std::int64_t>(said.rejected, 0, size);
  cells_.exported.Add(size - rejected);
  if (rejected == 0) return;
  cells_.dropped.Add(rejected, static_cast<int>(SpanDrop::kRefused));
  Tell(Severity::kWarn, "traces_refused",
       fmt::format("{} took a part of the spans: {}", shown_, consumer::OneLine(said.why)));
}

void SpanExporter::Drop(const Batch& batch, SpanDrop why) {
  cells_.dropped.Add(static_cast<std::int64_t>(batch.size()), static_cast<int>(why));
}

// False: it stops, and there is no time to try again.
bool SpanExporter::WaitBefore(Moment next) {
  std::unique_lock lock(mutex_);
  while (steady_clock::now() < next) {
    if (stop_at_ != Moment::max() && stop_at_ <= next) return false;
    changed_.wait_until(lock, next);
  }
  return steady_clock::now() < stop_at_;
}

SpanExporter::Moment SpanExporter::StopMoment() const {
  const std::lock_guard lock(mutex_);
  return stop_at_;
}

void SpanExporter::TellOfFullQueue() {
  const std::int64_t full = cells_.dropped.Value(static_cast<int>(SpanDrop::kQueueFull));
  if (full == std::exchange(full_told_, full)) return;
  Tell(Severity::kWarn, "traces_dropped",
       fmt::format("spans came faster than {} took them, and were dropped: lower "
                   "observe.traces.sample, or raise OTEL_BSP_MAX_QUEUE_SIZE",
                   shown_));
}

void SpanExporter::Tell(Severity severity, std::string_view event, std::string text) {
  const Moment now = steady_clock::now();
  std::erase_if(told_, [&](const Told& one) { return now - one.when >= kTellAgain; });
  if (log_ == nullptr || std::ranges::count(told_, text, &Told::text) > 0) return;
  log_->Write(severity, "", event, text);
  told_.push_back({std::move(text), now});
}

}  // namespace fencepost::metrics
