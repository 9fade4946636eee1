// Servers in the test itself that ask for a token, or for a user and a password.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/rotation/login.h"
#include "tests/support/stub_server.h"

namespace fencepost::testing {

class HttpLogin : public Login {
 public:
  enum class Scheme { kBearer, kBasic };

  void Take(const std::vector<std::string>& secrets) override;
  void Disconnect() override {}  // each request logs in
  [[nodiscard]] bool LetsIn(const std::string& secret) const override;
  [[nodiscard]] std::string refusal() const override { return "HTTP 401"; }

 protected:
  using Answer = StubServer::Answer;
  using Request = StubServer::Request;

  // `welcome`: the answer to who was let in.
  HttpLogin(Scheme scheme, StubServer::Handle welcome)
      : scheme_(scheme), welcome_(std::move(welcome)) {}

  [[nodiscard]] std::string Url(const std::string& path) const { return server_.Url(path); }
  // Requests up to now, those refused too.
  [[nodiscard]] std::size_t asked() const { return server_.requests().size(); }

 private:
  [[nodiscard]] std::string Header(const std::string& secret) const;
  Answer Serve(const Request& request) const;

  const Scheme scheme_;
  const StubServer::Handle welcome_;
  mutable std::mutex mutex_;
  std::set<std::string> taken_;  // whole headers; guarded by mutex_
  // Last: its threads use what stands above.
  StubServer server_{[this](const Request& request) { return Serve(request); }};
};

}  // namespace fencepost::testing
