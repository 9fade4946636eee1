// What a connection tells the log, and how often.
#include <fmt/format.h>

#include "locking/redis/node/connection.h"

namespace fencepost::locking {
namespace {

constexpr Nanos kBetweenNotes = std::chrono::seconds(1);
constexpr Nanos kBeforeRepeat = std::chrono::seconds(60);

}  // namespace

void Connection::NoteAway(const Failure& failure) {
  const Nanos since = now_.boot - noted_at_;
  const bool first = noted_at_ == Instant();
  const bool news = failure.what != noted_away_;
  if (!first && since < (news ? kBetweenNotes : kBeforeRepeat)) return;
  noted_away_ = failure.what;
  noted_at_ = now_.boot;
  client_.OnNote(Severity::kWarn, "redis_node_away",
                 fmt::format("{}: the lock node is away: {}{}{}", options_.address.text,
                             failure.what, failure.hint.empty() ? "" : "; ", failure.hint));
}

void Connection::NoteRefusal(std::string_view text, const NodeError& error) {
  const Nanos since = now_.boot - refusal_noted_at_;
  const bool first = refusal_noted_at_ == Instant();
  const bool news = error.reason != noted_refusal_;
  if (!first && since < (news ? kBetweenNotes : kBeforeRepeat)) return;
  noted_refusal_ = error.reason;
  refusal_noted_at_ = now_.boot;
  client_.OnNote(Severity::kWarn, "redis_call_refused",
                 fmt::format("{}: the lock node refuses calls: {}{}{}", options_.address.text, text,
                             error.hint.empty() ? "" : "; ", error.hint));
}

}  // namespace fencepost::locking
