// What a connection sends besides script calls: single commands, and the questions by which the
// store knows a node. Formats RESP requests and parses the replies. No sockets; any thread.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "locking/core/store/store.h"

struct redisReply;

namespace fencepost::locking {

// Appends one command.
void AppendCommand(std::initializer_list<std::string_view> words, std::string& out);

// The answer to TIME; nothing when it is not one.
std::optional<WallTime> TimeOf(const redisReply& reply);

// The questions for NodeInfo.
class Probe {
 public:
  // Appends them; returns how many answers will come.
  std::size_t Begin(std::string& out);
  // The next answer, which is no error. False: it is not what was asked for.
  bool OnAnswer(const redisReply& reply);
  NodeInfo& info() { return info_; }  // complete but for the times of `call`

 private:
  int answered_ = 0;
  NodeInfo info_;
};

}  // namespace fencepost::locking
