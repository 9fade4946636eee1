// What the workers' handler calls: an HTTP service behind a proxy, or a script. Both log every
// call, and refuse a token that is lower than one they have accepted for the same order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fault/matrix/audit.h"
#include "tests/support/process.h"
#include "tests/support/stub_server.h"
#include "tests/support/tcp_proxy.h"

namespace fencepost::matrix {

enum class Manner : std::uint8_t {
  kGood,
  kError,    // 500; the script: an error
  kSlow,     // accepted, and answered after the worker's limit
  kCut,      // accepted, and cut in the middle of the answer; the script: it ends
  kHuge,     // accepted, and answered with more than a worker takes: its record is bad
  kEndless,  // accepted, and answered without an end
  kGarbage,  // the script alone: a line that is no answer
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  [[nodiscard]] virtual std::string HandlerYaml() const = 0;
  virtual void Behave(Manner manner) = 0;
  [[nodiscard]] virtual std::vector<Call> Calls() const = 0;
  [[nodiscard]] virtual testing::TcpProxy* proxy() { return nullptr; }
  // Calls are logged, and not answered, until Release.
  virtual void Hold() {}
  virtual void Release() {}
};

std::unique_ptr<Receiver> MakeHttpReceiver();
std::unique_ptr<Receiver> MakeExecReceiver(const testing::TempDir& folder);

}  // namespace fencepost::matrix
