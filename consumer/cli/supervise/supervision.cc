#include "consumer/cli/supervise/supervision.h"

#include <algorithm>
#include <utility>

#include "consumer/cli/shared/command.h"
#include "locking/base/planted.h"

namespace fencepost::cli {
namespace {

// What a process may end with is 1 or 2; another code comes from whatever ended it.
int CodeOf(ProcessEnd end) { return end.value == kUsage ? kUsage : kFailed; }

}  // namespace

Supervision::Supervision(Options options)
    : options_(options), states_(static_cast<std::size_t>(options.processes)) {
  for (State& state : states_) state.start_at = Time{};  // at once
}

Supervision::Actions Supervision::OnTime(Time now) {
  Actions actions;
  if (kill_at_ && now >= *kill_at_ && !std::exchange(killed_, true)) {
    for (int i = 0; i < options_.processes; ++i) {
      if (Of(i).running) actions.push_back({Act::kKill, i});
    }
  }
  for (int i = 0; i < options_.processes; ++i) {
    State& state = Of(i);
    if (!state.start_at || now < *state.start_at) continue;
    state.start_at.reset();
    if (state.starts++ > 0) ++state.restarts;
    actions.push_back({Act::kStart, i});
  }
  return actions;
}

void Supervision::OnStarted(int process, Time now) {
  Of(process).running = true;
  Of(process).started = now;
}

Supervision::Actions Supervision::OnEnded(int process, ProcessEnd end, Time now) {
  State& state = Of(process);
  const bool was_steady = state.running && now - state.started >= options_.steady;
  state.running = false;
  const bool own_decision = !end.by_signal && end.value != 0;
  if (stopping_) {
    if (code_ == 0 && (own_decision || end.by_signal)) {
      code_ = own_decision ? CodeOf(end) : kFailed;
    }
    return {};
  }
  if (own_decision && !Planted("decision_is_started_again")) {
    code_ = CodeOf(end);
    return StopAll(now);
  }
  state.wait = was_steady || state.wait == Duration{0}
                   ? options_.first_wait
                   : std::min<Duration>(2 * state.wait, options_.longest_wait);
  if (!Planted("crashed_process_stays_away")) state.start_at = now + state.wait;
  return {};
}

Supervision::Actions Supervision::OnStop(Time now) {
  if (!stopping_) return StopAll(now);
  kill_at_ = std::min(*kill_at_, now + options_.hurried_limit);
  Actions actions;
  for (int i = 0; i < options_.processes; ++i) {
    if (Of(i).running) actions.push_back({Act::kStop, i});
  }
  return actions;
}

Supervision::Actions Supervision::StopAll(Time now) {
  stopping_ = true;
  kill_at_ = now + options_.stop_limit;
  Actions actions;
  for (int i = 0; i < options_.processes; ++i) {
    Of(i).start_at.reset();
    if (Of(i).running) actions.push_back({Act::kStop, i});
  }
  return actions;
}

bool Supervision::AnyRuns() const { return std::ranges::any_of(states_, &State::running); }

std::optional<Supervision::Time> Supervision::next() const {
  std::optional<Time> earliest;
  const auto consider = [&](const std::optional<Time>& at) {
    if (at && (!earliest || *at < *earliest)) earliest = at;
  };
  for (const State& state : states_) consider(state.start_at);
  if (!killed_ && AnyRuns()) consider(kill_at_);
  return earliest;
}

std::optional<int> Supervision::exit_code() const {
  if (!stopping_ || AnyRuns()) return std::nullopt;
  return code_;
}

}  // namespace fencepost::cli
