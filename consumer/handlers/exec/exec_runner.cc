#include "consumer/handlers/exec/exec_runner.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/exec/exec_protocol.h"
#include "consumer/record/text.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

using locking::Severity;

constexpr Millis kFirstBackoff{100};
constexpr Millis kGrace{1000};
constexpr Millis kExitGrace{200};
constexpr std::size_t kMaxNote = 1000;
constexpr int kLastRounds = 64;  // MiB that are read of what a process left behind

HandlerFailure Failed(std::string error_class, std::string text, std::string shown) {
  return {
      .error_class = std::move(error_class), .text = std::move(text), .shown = std::move(shown)};
}

}  // namespace

ExecRunner::ExecRunner(ExecHandlerOptions options, std::string pipeline, int concurrency,
                       ConsumerObserver* observer, Answered answered)
    : PollingRunner(BatchQueue(options.batch), concurrency, observer, std::move(answered)),
      options_(std::move(options)),
      pipeline_(std::move(pipeline)),
      slots_(std::min(concurrency_, static_cast<std::size_t>(std::max(options_.processes, 1)))) {}

ExecRunner::~ExecRunner() { ExecRunner::Stop(); }

tl::expected<void, Error> ExecRunner::Start() {
  if (options_.command.empty()) {
    return tl::unexpected(Error{.code = "bad_config",
                                .what = "the command is empty",
                                .where = "handler.exec",
                                .hint = "write it as in [./transform.py]"});
  }
  auto program = FindProgram(options_.command.front());
  if (!program) return tl::unexpected(program.error());
  command_.words = options_.command;
  command_.words.front() = *program;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("FENCEPOST_PIPELINE=")) {
      command_.environment.emplace_back(*entry);
    }
  }
  command_.environment.push_back("FENCEPOST_PIPELINE=" + pipeline_);

  FENCEPOST_CHECK(wake_up_.error() == 0, "eventfd");
  std::promise<tl::expected<void, Error>> started;
  auto result = started.get_future();
  // Processes are started there: they die with the thread that did it.
  thread_ =
      std::thread([this, promise = std::move(started)]() mutable { Run(std::move(promise)); });
  auto outcome = result.get();
  if (!outcome) Stop();
  return outcome;
}

// It fails only when the counter is full: then the thread wakes anyway.
void ExecRunner::Wake() { wake_up_.Wake(); }

void ExecRunner::Run(std::promise<tl::expected<void, Error>> started) {
  BlockSignals();
  auto outcome = StartAll();
  const bool good = outcome.has_value();
  started.set_value(std::move(outcome));
  while (good && !stopping()) {
    TakeCommands();
    StartDue(Clock::now());
    HandOut();
    Poll();
    EndOverdue(Clock::now());
    std::erase_if(dying_, [](auto& process) { return process->Ended().has_value(); });
  }
  EndAll();
}

tl::expected<void, Error> ExecRunner::StartAll() {
  for (Slot& slot : slots_) {
    auto process = ExecProcess::Start(command_);
    if (!process) return tl::unexpected(process.error());
    slot.process = std::move(*process);
  }
  return {};
}

bool ExecRunner::CancelRunning(std::uint64_t id) {
  for (Slot& slot : slots_) {
    if (!slot.work || !slot.work->Has(id)) continue;
    slot.work->cancelled.push_back(id);
    if (!slot.work->Abandoned()) return true;
    Discard(slot);
    AnswerEach(Ended(slot), {});
    return true;
  }
  return false;
}

void ExecRunner::StartDue(Clock::time_point now) {
  for (Slot& slot : slots_) {
    if (slot.process || slot.start_at > now) continue;
    auto process = ExecProcess::Start(command_);
    if (process) {
      slot.process = std::move(*process);
    } else {
      ScheduleRestart(slot, process.error().Line());
      TellWaiting(process.error().what);
    }
  }
}

// No process is there for them: the flow knows what that means for their records and for /ready.
void ExecRunner::TellWaiting(const std::string& why) {
  if (!waiting_.Due(Now())) return;
  for (const HandlerCall& call : TakeDue()) {
    HandlerFailure failure = Failed("exec", why, why);
    failure.reached = false;
    answered_({.id = call.id, .result = tl::unexpected(std::move(failure))});
  }
}

void ExecRunner::HandOut() {
  for (Slot& slot : slots_) {
    while (slot.free() && waiting_.Due(Now()) &&
           (Planted("line_from_before_is_the_reply") || ReadyForRecord(slot))) {
      GiveTo(slot, TakeDue());
    }
  }
}

// What a process says before it has its record is no reply to it.
bool ExecRunner::ReadyForRecord(Slot& slot) {
  PipeLines& lines = slot.process->out();
  lines.Read();
  if (!TakeReplies(slot)) return false;
  if (lines.has_part()) {
    BrokeUnasked(slot, lines.TakePart().size());
    return false;
  }
  if (!lines.open()) slot.gone_at = Clock::now() + kExitGrace;
  return slot.free();
}

void ExecRunner::GiveTo(Slot& slot, CallBatch calls) {
  const Clock::time_point now = Clock::now();
  Out out{.calls = {}, .since = now};
  std::vector<std::string> requests;
  for (HandlerCall& call : calls) {
    auto request = ExecRequest(call, options_.value);
    if (request && request->size() <= kMaxAnswerBytes) {
      requests.push_back(std::move(*request));
      out.calls.push_back(std::move(call));
      continue;
    }
    HandlerResult refused =
        request ? TooLarge("the request's line") : tl::unexpected(std::move(request.error()));
    refused.error().asked = false;
    answered_({.id = call.id, .result = std::move(refused)});
  }
  if (out.calls.empty()) return;
  slot.timeout = out.calls.front().timeout;
  slot.deadline = now + slot.timeout;
  slot.work = std::move(out);
  slot.process->Send(ExecLine(requests, batches()));
}

void ExecRunner::Poll() {
  polled_.assign(1, {.fd = wake_up_.fd(), .events = POLLIN, .revents = 0});
  for (const Slot& slot : slots_) {  // four each; poll passes over negative numbers
    const bool there = slot.process != nullptr;
    const auto add = [&](int fd, short events) { polled_.push_back({fd, events, 0}); };
    add(there ? slot.process->end_fd() : -1, POLLIN);
    add(there ? slot.process->out().fd() : -1, POLLIN);
    add(there ? slot.process->err().fd() : -1, POLLIN);
    add(there && slot.process->unsent() ? slot.process->in_fd() : -1, POLLOUT);
  }
  for (const auto& process : dying_) polled_.push_back({process->end_fd(), POLLIN, 0});
  const int ready = poll(polled_.data(), polled_.size(), PollMillis(Clock::now()));
  FENCEPOST_CHECK(ready >= 0 || errno == EINTR, "poll");
  if (ready <= 0) return;
  if (polled_[0].revents != 0) wake_up_.Taken();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto first = polled_.begin() + static_cast<std::ptrdiff_t>(1 + i * 4);
    if (std::any_of(first, first + 4, [](const pollfd& fd) { return fd.revents != 0; })) {
      Serve(slots_[i]);
    }
  }
}

int ExecRunner::PollMillis(Clock::time_point now) const {
  std::optional<Clock::time_point> next;
  for (const Slot& slot : slots_) {
    Clock::time_point at = slot.work ? slot.deadline : slot.start_at;
    if (slot.free()) {
      const Instant due = waiting_.Next(Now());
      if (due == Instant::max()) continue;
      at = now + (due - Now());
    }
    if (slot.gone_at) at = *slot.gone_at;
    next = next ? std::min(*next, at) : at;
  }
  if (!next) return -1;
  const auto wait = std::chrono::ceil<Millis>(*next - now);
  return static_cast<int>(std::clamp<Millis::rep>(wait.count(), 0, 60'000));
}

// Everything that this process has for us; its end last, since what it said before counts.
void ExecRunner::Serve(Slot& slot) {
  ExecProcess& process = *slot.process;
  process.Write();
  const auto ended = process.Ended();
  bool more = true;
  for (int rounds = 0; more && rounds < (ended ? kLastRounds : 1); ++rounds) {
    more = process.out().Read();
    more = process.err().Read() || more;
    if (auto said = TakeStderr(process); !said.empty()) slot.last_said = std::move(said);
    if (!TakeReplies(slot)) return;
  }
  if (ended) return Died(slot, *ended);
  if (!process.out().open() && !slot.gone_at) slot.gone_at = Clock::now() + kExitGrace;
}

std::string ExecRunner::TakeStderr(ExecProcess& process) {
  std::string last;
  const auto note = [&](const std::string& line) {
    std::string text = OneLine(line, kMaxNote);
    if (text.empty()) return;
    observer_->OnNote(Severity::kInfo, "handler_stderr", text);
    last = std::move(text);
  };
  PipeLines& lines = process.err();
  while (const auto line = lines.Next()) note(*line);
  if (lines.too_long() || !lines.open()) note(lines.TakePart());
  return last;
}

bool ExecRunner::TakeReplies(Slot& slot) {
  PipeLines& lines = slot.process->out();
  while (const auto line = lines.Next()) {
    if (IsExecHeartbeat(*line)) {
      slot.deadline = Clock::now() + slot.timeout;
      continue;
    }
    if (!slot.work) {
      BrokeUnasked(slot, line->size());
      return false;
    }
    auto results = ResultsIn(*line, slot.work->calls);
    if (!results) {
      const std::string shown =
          "the reply cannot be read: " + results.error() + " (what is no reply goes to stderr)";
      Broke(slot, shown);
      FailAll(Ended(slot), Failed("exec_protocol",
                                  fmt::format("{}; the line: {}", shown, OneLine(*line)), shown));
      return false;
    }
    slot.backoff = Millis(0);
    slot.answered = true;
    AnswerEach(Ended(slot), std::move(*results));
  }
  if (!lines.too_long()) return true;
  Broke(slot, "its line is too long");
  if (slot.work) FailAll(Ended(slot), TooLarge("the reply's line").error());
  return false;
}

tl::expected<std::vector<HandlerResult>, std::string> ExecRunner::ResultsIn(
    const std::string& line, const CallBatch& calls) const {
  if (!batches()) {
    return ParseExecReply(line, calls.front().record_id).map([](HandlerResult result) {
      return std::vector<HandlerResult>{std::move(result)};
    });
  }
  return ParseExecBatch(line, RecordIds(calls));
}

void ExecRunner::EndOverdue(Clock::time_point now) {
  for (Slot& slot : slots_) {
    if (slot.gone_at && *slot.gone_at <= now) Died(slot, "by closing its stdout");
    if (!slot.work || slot.deadline > now) continue;
    const std::size_t count = slot.work->calls.size();
    const HandlerCall& call = slot.work->calls.front();
    observer_->OnRecordNote(Severity::kWarn, "handler_killed",
                            fmt::format("its process did not answer within {} ms and was killed{}",
                                        slot.timeout.count(),
                                        count > 1 ? fmt::format("; it had {} records", count) : ""),
                            {.where = call.where,
                             .offset = call.record.offset,
                             .record_id = call.record_id,
                             .token = call.token,
                             .attempt = call.attempt,
                             .trace = call.trace});
    Discard(slot);
    FailAll(Ended(slot), TimedOut(slot.timeout).error());
  }
}

PollingRunner::Out ExecRunner::Ended(Slot& slot) {
  Out out = std::move(*slot.work);
  slot.work.reset();
  return out;
}

void ExecRunner::Died(Slot& slot, const std::string& how) {
  const pid_t pid = slot.process->pid();
  const bool answered = slot.answered;
  const bool unread = answered && slot.process->Ended() && slot.process->Unread();
  // For the dead letter alone: it may quote the record.
  const std::string said = slot.last_said.empty() ? "" : "; on stderr it said: " + slot.last_said;
  Discard(slot);
  ScheduleRestart(slot, fmt::format("process {} ended {}", pid, how));
  if (slot.work && unread) {
    waiting_.PutBack(TakeBack(Ended(slot)));
  } else if (slot.work) {
    const std::string shown = fmt::format("the process ended {} before it replied", how);
    FailAll(Ended(slot), Failed("exec", shown + said, shown));
  } else if (!answered) {
    TellWaiting(fmt::format("the process ended {} before it had a record", how));
  }
}

void ExecRunner::Broke(Slot& slot, const std::string& why) {
  const pid_t pid = slot.process->pid();
  Discard(slot);
  ScheduleRestart(slot, fmt::format("process {} was killed: {}", pid, why));
}

// Not the line itself, which may hold a record: the log is not the place for it.
void ExecRunner::BrokeUnasked(Slot& slot, std::size_t bytes) {
  const bool answered = slot.answered;
  const std::string why =
      fmt::format("it wrote a line of {} bytes that nobody had asked for (print to stderr)", bytes);
  Broke(slot, why);
  if (!answered) TellWaiting("the process was killed: " + why);
}

void ExecRunner::Discard(Slot& slot) {
  slot.process->Kill();
  dying_.push_back(std::move(slot.process));
  slot.start_at = {};
  slot.gone_at.reset();
  slot.answered = false;
  slot.last_said.clear();
}

void ExecRunner::ScheduleRestart(Slot& slot, std::string_view what) {
  slot.backoff =
      slot.backoff == Millis(0) ? kFirstBackoff : std::min(slot.backoff * 2, kMaxBackoff);
  slot.start_at = Clock::now() + slot.backoff;
  observer_->OnNote(Severity::kWarn, "handler_exited",
                    fmt::format("{}; started again in {} ms", what, slot.backoff.count()));
}

// Closes what is idle by the end of its input, and kills the rest.
void ExecRunner::EndAll() {
  waiting_.Clear();
  std::vector<std::unique_ptr<ExecProcess>> idle;
  for (Slot& slot : slots_) {
    if (!slot.process) continue;
    if (slot.work) {
      Discard(slot);
      observer_->OnHandled(Clock::now() - slot.work->since);
    } else {
      slot.process->CloseInput();
      idle.push_back(std::move(slot.process));
    }
  }
  const Clock::time_point end = Clock::now() + kGrace;
  while (true) {
    for (const auto& process : idle) {
      process->out().Read();  // it may still have to say something before it ends
      process->err().Read();
      (void)TakeStderr(*process);
      process->out().TakePart();
    }
    std::erase_if(idle, [](const auto& process) { return process->Ended().has_value(); });
    const auto left = std::chrono::ceil<Millis>(end - Clock::now());
    if (idle.empty() || left <= Millis(0)) break;
    polled_.clear();
    for (const auto& process : idle) {
      polled_.push_back({process->end_fd(), POLLIN, 0});
      polled_.push_back({process->out().fd(), POLLIN, 0});
      polled_.push_back({process->err().fd(), POLLIN, 0});
    }
    poll(polled_.data(), polled_.size(), static_cast<int>(left.count()));
  }
  idle.clear();  // killed with their groups
  dying_.clear();
}

}  // namespace fencepost::consumer
