// A blocking connection that sends what locking/redis/wire formats, for tests of the scripts alone.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "locking/core/store/sentinel.h"
#include "locking/core/store/store.h"
#include "locking/redis/node/plain_acquire.h"
#include "locking/redis/wire.h"
#include "tests/support/redis_server.h"

namespace fencepost::testing {

using locking::CallHeader;
using locking::LockOptions;
using locking::Millis;
using locking::Nonce;
using locking::Op;
using locking::OpKind;
using locking::Reply;
using locking::ReplyCode;
using locking::SentinelWrite;
using locking::Token;
using locking::WallTime;

struct CallResult {
  std::string error;  // as the node words it, or what ParseCall said; empty when it was answered
  CallHeader header;
  std::vector<Reply> replies;
};

// A complete sentinel that counts: no quarantine.
inline std::string CompleteSentinel(Millis max_ttl,
                                    WallTime quarantine_until = WallTime(Millis(0))) {
  return "C|" + std::string(32, 'a') + "|0|1|00000001|" + std::string(40, 'b') + "|" +
         fmt::format("{:013}|{:08}", quarantine_until.time_since_epoch().count(), max_ttl.count());
}

class ScriptClient {
 public:
  explicit ScriptClient(const RedisServer& server, std::vector<std::string> auth = {})
      : context_(redisConnect("127.0.0.1", server.port()), &redisFree) {
    if (!context_ || context_->err != 0) throw std::runtime_error("no connection to redis-server");
    if (!auth.empty()) {
      auth.insert(auth.begin(), "AUTH");
      Require(Command(auth), "OK");
    }
    for (const locking::Script* script : locking::AllScripts()) {
      Require(Command({"SCRIPT", "LOAD", std::string(script->text)}), script->sha);
    }
  }

  std::string Command(const std::vector<std::string>& words) {
    std::string out = fmt::format("*{}\r\n", words.size());
    for (const std::string& word : words) out += fmt::format("${}\r\n{}\r\n", word.size(), word);
    return Text(*Send(out));
  }

  CallResult Call(OpKind kind, std::span<const Op> ops, const LockOptions& options) {
    buffer_.clear();
    locking::FormatCall(kind, ops, options, buffer_);
    const ReplyPtr reply = Send(buffer_);
    CallResult result;
    if (reply->type != REDIS_REPLY_STRING) {
      result.error = Text(*reply);
      return result;
    }
    const auto header =
        locking::ParseCall(kind, ops, std::string_view(reply->str, reply->len), result.replies);
    if (header) {
      result.header = *header;
    } else {
      result.error = header.error();
    }
    return result;
  }
  // One acquire by plain commands, whether it suits or not. Returns the deadline that was asked
  // for; `plain.Judge` tells what came of it.
  WallTime AskPlainly(const Op& op, const LockOptions& options, locking::PlainAcquire& plain) {
    buffer_.clear();
    plain.Write({&op, 1}, options, locking::ReadClocks(), buffer_);
    ReplyPtr reply = Send(buffer_);
    while (!plain.OnAnswer(*reply)) {
      void* next = nullptr;
      if (redisGetReply(context_.get(), &next) != REDIS_OK) throw std::runtime_error("redis: gone");
      reply = {static_cast<redisReply*>(next), &freeReplyObject};
    }
    const std::string_view value = "$44\r\nH";
    return WallTime(
        Millis(std::stoll(buffer_.substr(buffer_.find(value) + value.size(), 11), nullptr, 16)));
  }
  // The one reply to one operation; fails the test when there is none.
  Reply Ask(const Op& op, const LockOptions& options) {
    const CallResult result = Call(op.kind, {&op, 1}, options);
    EXPECT_EQ(result.error, "");
    Reply none;
    none.code = ReplyCode::kError;
    return result.replies.empty() ? none : result.replies[0];
  }

  WallTime NodeTime() {
    std::istringstream time(Command({"TIME"}));
    std::int64_t seconds = 0;
    std::int64_t micros = 0;
    time >> seconds >> micros;
    return WallTime(Millis(seconds * 1000 + micros / 1000));
  }

  locking::SentinelAnswer WriteSentinel(const SentinelWrite& write) {
    std::string out;
    locking::FormatSentinelWrite(write, out);
    const ReplyPtr reply = Send(out);
    auto answer = locking::ParseSentinelWrite(Text(*reply));
    if (!answer) throw std::runtime_error(answer.error() + ": " + Text(*reply));
    return *answer;
  }

 private:
  using ReplyPtr = std::unique_ptr<redisReply, void (*)(void*)>;

  ReplyPtr Send(const std::string& resp) {
    void* reply = nullptr;
    if (redisAppendFormattedCommand(context_.get(), resp.data(), resp.size()) != REDIS_OK ||
        redisGetReply(context_.get(), &reply) != REDIS_OK) {
      throw std::runtime_error(std::string("redis: ") + context_->errstr);
    }
    return {static_cast<redisReply*>(reply), &freeReplyObject};
  }
  static std::string Text(const redisReply& reply) {
    if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
    if (reply.type == REDIS_REPLY_NIL) return "(nil)";
    std::string text;
    if (reply.type == REDIS_REPLY_ARRAY) {
      for (std::size_t i = 0; i < reply.elements; ++i) {
        text += (i > 0 ? "\n" : "") + Text(*reply.element[i]);
      }
      return text;
    }
    return {reply.str, reply.len};
  }
  static void Require(const std::string& answer, const std::string& expected) {
    if (answer != expected) throw std::runtime_error("redis: " + answer);
  }

  std::unique_ptr<redisContext, void (*)(redisContext*)> context_;
  std::string buffer_;
};

}  // namespace fencepost::testing
