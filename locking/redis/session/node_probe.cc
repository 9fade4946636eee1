#include "locking/redis/session/node_probe.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "locking/redis/wire.h"

namespace fencepost::locking {
namespace {

bool IsText(const redisReply& reply) {
  return reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS;
}

std::optional<std::int64_t> Number(std::string_view digits) {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::string_view TextOf(const redisReply& reply) { return {reply.str, reply.len}; }

std::optional<WallTime> TimeOf(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 2) return std::nullopt;
  if (!IsText(*reply.element[0]) || !IsText(*reply.element[1])) return std::nullopt;
  const auto seconds = Number(TextOf(*reply.element[0]));
  const auto micros = Number(TextOf(*reply.element[1]));
  if (!seconds || !micros) return std::nullopt;
  return WallTime(Millis(*seconds * 1000 + *micros / 1000));
}

InfoFields FieldsOf(std::string_view info) {
  InfoFields fields;
  for (std::size_t at = 0; at < info.size();) {
    const std::size_t end = std::min(info.find("\r\n", at), info.size());
    const std::string_view line = info.substr(at, end - at);
    const std::size_t colon = line.find(':');
    if (colon != line.npos) fields.emplace(line.substr(0, colon), line.substr(colon + 1));
    at = end + 2;
  }
  return fields;
}

std::size_t Probe::Begin(std::string& out) {
  answered_ = 0;
  info_ = NodeInfo();
  AppendCommand({"INFO", "server"}, out);
  AppendCommand({"INFO", "memory"}, out);
  AppendCommand({"INFO", "replication"}, out);
  AppendCommand({"TIME"}, out);
  AppendCommand({"GET", kSentinelKey}, out);
  return 5;
}

bool Probe::OnAnswer(const redisReply& reply) {
  const int question = answered_++;
  if (question == kTime) {
    const auto time = TimeOf(reply);
    if (time) info_.call.node_time = *time;
    return time.has_value();
  }
  if (question > kTime && reply.type == REDIS_REPLY_NIL) return true;
  if (!IsText(reply)) return false;
  const std::string_view text = TextOf(reply);
  if (question == 0) {
    InfoFields fields = FieldsOf(text);
    info_.run_id = fields["run_id"];
    info_.mode = fields["redis_mode"];
  } else if (question == 1) {
    info_.maxmemory_policy = FieldsOf(text)["maxmemory_policy"];
  } else if (question == 2) {
    info_.role = FieldsOf(text)["role"];
  } else {
    info_.sentinel = text;
  }
  return true;
}

}  // namespace fencepost::locking
