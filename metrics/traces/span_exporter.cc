#include "metrics/traces/span_exporter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "consumer/record/headers.h"
#include "consumer/record/text.h"
#include "locking/base/check.h"
#include "locking/base/random.h"

namespace fencepost::metrics {
namespace {

using locking::Severity;
using std::chrono::steady_clock;

constexpr std::chrono::minutes kTellAgain{1};
constexpr std::size_t kMostTold = 64;          // within it
constexpr std::chrono::seconds kLookAgain{1};  // for spans that were dropped, in a long wait

// Of a Content-Type, which may have parameters.
bool IsProtobuf(std::string_view type) {
  const std::string_view name = type.substr(0, type.find_first_of("; "));
  return consumer::SameHeader(name, "application/x-protobuf") ||
         consumer::SameHeader(name, "application/protobuf");
}

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
  bool fits = false;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t before = queue_.size();
    const bool open = stop_at_ == Moment::max();
    fits = open && before + spans.size() <= options_.max_queue;
    if (fits) std::ranges::move(spans, std::back_inserter(queue_));
    if (before == 0) oldest_ = steady_clock::now();
    wake = before == 0 || (before < options_.max_batch && queue_.size() >= options_.max_batch);
  }
  if (wake) changed_.notify_one();
  if (!fits) Drop(spans.size(), SpanDrop::kQueueFull);
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
  DropTheRest();
}

// The next batch, once it is whole or its time has come; empty at the end, or as time is up.
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
      WaitAWhile(lock, next);
    } else {
      break;
    }
  }
  Batch batch;
  if (steady_clock::now() >= stop_at_) return batch;
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
    if (verdict == ExportRetry::Verdict::kRefused) return OnRefused(batch, answer.status, "");
    const bool again = retry_.Again(steady_clock::now(), answer.retry_after, Random());
    if (again && WaitBefore(retry_.not_before())) continue;
    const bool answered = answer.status != 0;
    Tell(Severity::kWarn, "traces_failed", answered ? answer.status : answer.code,
         fmt::format("{} took no spans, which are dropped: {}", shown_,
                     answered ? fmt::format("HTTP {}", answer.status) : answer.problem));
    return Drop(batch.size(), SpanDrop::kFailed);
  }
}

// A status alone says little: a proxy's page of login is 200, too.
void SpanExporter::OnTaken(const Batch& batch, const TracePost::Answer& answer) {
  if (!answer.type.empty() && !IsProtobuf(answer.type)) {
    return OnRefused(batch, answer.status,
                     fmt::format(" with {} in place of protobuf", consumer::OneLine(answer.type)));
  }
  const bool whole = answer.code == 0;
  const auto said = whole ? ReadTraceAnswer(answer.body) : TraceAnswer();
  if (!said) return OnRefused(batch, answer.status, " with what is no answer of OTLP");
  const auto size = static_cast<std::int64_t>(batch.size());
  const std::int64_t rejected = std::clamp<std::int64_t>(said->rejected, 0, size);
  cells_.exported.Add(size - rejected);
  if (rejected > 0) {
    Drop(static_cast<std::size_t>(rejected), SpanDrop::kRefused);
    Tell(Severity::kWarn, "traces_refused", 0,
         fmt::format("{} took a part of the spans: {}", shown_, consumer::OneLine(said->why)));
  } else if (!said->why.empty()) {
    Tell(Severity::kWarn, "traces_warning", 0,
         fmt::format("{} took the spans, and says: {}", shown_, consumer::OneLine(said->why)));
  }
}

void SpanExporter::OnRefused(const Batch& batch, int status, std::string_view said) {
  Tell(Severity::kWarn, "traces_refused", status,
       fmt::format("{} answered HTTP {}{} to spans, which are dropped: check endpoint and headers "
                   "of observe.traces, or OTEL_EXPORTER_OTLP_*",
                   shown_, status, said));
  Drop(batch.size(), SpanDrop::kRefused);
}

void SpanExporter::Drop(std::size_t spans, SpanDrop why) {
  cells_.dropped.Add(static_cast<std::int64_t>(spans), static_cast<int>(why));
}

// At the end: nothing comes any more.
void SpanExporter::DropTheRest() {
  std::deque<consumer::Span> rest;
  {
    const std::lock_guard lock(mutex_);
    rest.swap(queue_);
  }
  if (rest.empty()) return;
  Drop(rest.size(), SpanDrop::kFailed);
  Tell(Severity::kWarn, "traces_failed", CURLE_OPERATION_TIMEDOUT,
       fmt::format("{} took no spans, which are dropped: the time is up", shown_));
}

// False: it stops, and there is no time to try again.
bool SpanExporter::WaitBefore(Moment next) {
  std::unique_lock lock(mutex_);
  while (steady_clock::now() < next) {
    if (stop_at_ != Moment::max() && stop_at_ <= next) return false;
    WaitAWhile(lock, next);
  }
  return steady_clock::now() < stop_at_;
}

// Not longer than kLookAgain: what finds no room meanwhile is told of.
void SpanExporter::WaitAWhile(std::unique_lock<std::mutex>& lock, Moment next) {
  changed_.wait_until(lock, std::min<Moment>(next, steady_clock::now() + kLookAgain));
  lock.unlock();
  TellOfFullQueue();
  lock.lock();
}

SpanExporter::Moment SpanExporter::StopMoment() const {
  const std::lock_guard lock(mutex_);
  return stop_at_;
}

void SpanExporter::TellOfFullQueue() {
  const std::int64_t full = cells_.dropped.Value(static_cast<int>(SpanDrop::kQueueFull));
  if (full == std::exchange(full_told_, full)) return;
  Tell(Severity::kWarn, "traces_dropped", 0,
       fmt::format("spans came faster than {} took them, and were dropped: lower "
                   "observe.traces.sample, or raise OTEL_BSP_MAX_QUEUE_SIZE",
                   shown_));
}

void SpanExporter::Tell(Severity severity, std::string_view event, int number,
                        std::string_view text) {
  const Moment now = steady_clock::now();
  std::erase_if(told_, [&](const auto& one) { return now - one.second >= kTellAgain; });
  if (log_ == nullptr || told_.size() >= kMostTold) return;
  if (!told_.try_emplace({event, number}, now).second) return;
  log_->Write(severity, "", event, text);
}

}  // namespace fencepost::metrics
