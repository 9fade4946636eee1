// What the handlers of workers call: an HTTP service behind a proxy, or a script. Both log every
// call, and refuse a token that is lower than one they have accepted for the same record id.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/audit.h"
#include "tests/support/process.h"
#include "tests/support/tcp_proxy.h"

namespace fencepost::testing {

enum class Manner : std::uint8_t {
  kGood,
  kMoody,    // every seventh order is refused at its first try, every 49th at its second too
  kError,    // 500; the script: an error
  kSlow,     // accepted, and answered after the worker's limit
  kCut,      // accepted, and cut in the middle of the answer; the script: it ends, amid a batch
  kHuge,     // accepted, and answered with more than a worker takes: its record is bad
  kEndless,  // accepted, and answered without an end
  kGarbage,  // the script alone: a line that is no answer
  kHalf,     // of a batch over HTTP: accepted, and the first half is answered
  kTwice,    // … and the first one's answer stands for the last one's too
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // `handler:` of that pipeline. Its environment has LIFE, the number of the process.
  [[nodiscard]] virtual std::string HandlerYaml(const std::string& pipeline) const = 0;
  virtual void Behave(Manner manner) = 0;
  // Of that pipeline, or of all.
  [[nodiscard]] virtual std::vector<Call> Calls(const std::string& pipeline = "") const = 0;
  // How many times the amount of an order it answers.
  [[nodiscard]] virtual int factor() const = 0;
  // What a call lacked that each must have; "" when nothing.
  [[nodiscard]] virtual std::string Missing() const { return ""; }
  [[nodiscard]] virtual TcpProxy* proxy() { return nullptr; }
  // Calls come in, and are not answered, until Release. Of the service: once.
  virtual void Hold() = 0;
  virtual void Release() = 0;
};

// `batches`: their calls have several records.
std::unique_ptr<Receiver> MakeHttpReceiver(bool batches = false);
// With its files in that folder.
std::unique_ptr<Receiver> MakeExecReceiver(const TempDir& folder, bool batches = false);

// TOPIC/PARTITION/OFFSET
Place PlaceIn(const std::string& source);

}  // namespace fencepost::testing
