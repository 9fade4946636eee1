// Reads replies, and asks the questions by which the store knows a node. No sockets; any thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "locking/core/store/store.h"

struct redisReply;

namespace fencepost::locking {

// The text of a string, a status or an error; empty for other replies.
std::string_view TextOf(const redisReply& reply);

// By name, of the reply to INFO.
using InfoFields = std::map<std::string, std::string, std::less<>>;
InfoFields FieldsOf(std::string_view info);

// The answer to TIME; nothing when it is not one.
std::optional<WallTime> TimeOf(const redisReply& reply);

// The questions for NodeInfo.
class Probe {
 public:
  // Appends them; returns how many answers will come.
  std::size_t Begin(std::string& out);
  // The next answer, which is no error. False: it is not what was asked for.
  bool OnAnswer(const redisReply& reply);
  // The next answer is an error. False: the node cannot be known without it.
  bool OnRefusal() { return answered_++ != kTime; }
  [[nodiscard]] bool AsksInfo() const { return answered_ < kTime; }
  NodeInfo& info() { return info_; }  // complete but for the times of `call`

 private:
  static constexpr int kTime = 3;  // INFO comes before it, the sentinel behind it

  int answered_ = 0;
  NodeInfo info_;
};

}  // namespace fencepost::locking
