// What the handlers' outside sees: an HTTP service and a script that note each call, and refuse the
// first tries of some orders.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/stub_server.h"

namespace fencepost::testing {

// Every seventh order is refused at its first try, every 49th at its second too.
int Refusals(int order);

struct Call {
  std::string pipeline;
  std::string record_id;
  std::int64_t token = 0;
  std::string source;  // TOPIC/PARTITION/OFFSET
  int life = -1;
  std::int64_t begin_ns = 0;  // on one clock for all calls of a pipeline
  std::int64_t end_ns = 0;
  bool refused = false;
};

// Answers {"order_id", "amount" twice as much}. POST /PIPELINE.
class HttpService {
 public:
  HttpService();

  [[nodiscard]] std::string Url() const { return server_.Url("/"); }
  // From Hold on calls are answered only after Release, which comes once.
  void Hold() { held_ = true; }
  void Release() { server_.Release(); }
  [[nodiscard]] std::vector<Call> Calls(const std::string& pipeline) const;
  // What the calls lacked that each must have; "" when nothing.
  [[nodiscard]] std::string Missing() const;

 private:
  StubServer::Answer Answer(const StubServer::Request& request);

  std::atomic<bool> held_{false};
  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  std::map<std::string, int> tries_;  // by pipeline and record id
  std::string missing_;
  StubServer server_;  // last: it calls the others
};

// A script for handler.exec that answers {"order_id", "amount" three times as much}.
class ExecScript {
 public:
  explicit ExecScript(const TempDir& folder);
  ~ExecScript();
  ExecScript(const ExecScript&) = delete;
  ExecScript& operator=(const ExecScript&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void Hold() const;  // until Release the processes do not answer
  void Release() const;
  [[nodiscard]] std::vector<Call> Calls(const std::string& pipeline) const;

 private:
  const TempDir& folder_;
  std::string path_;
  int hold_;
};

}  // namespace fencepost::testing
