// An HTTP/1.1 server in the test itself, a thread a connection, that does exactly what the test
// says, wrong things too.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace fencepost::testing {

class StubServer {
 public:
  struct Request {
    std::string line;                            // "POST /charge HTTP/1.1"
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
  };
  struct Answer {
    int status = 200;  // 0: the connection is closed instead
    std::string body{};
    std::vector<std::string> headers{};
    std::string raw{};            // sent instead, and the connection closed
    std::string over_and_over{};  // sent behind `raw` until the client has enough of it
  };
  using Handle = std::function<Answer(const Request&)>;

  explicit StubServer(Handle handle);
  ~StubServer();  // releases what is held
  StubServer(const StubServer&) = delete;
  StubServer& operator=(const StubServer&) = delete;

  [[nodiscard]] std::string Url(const std::string& path = "/") const;

  // For `handle`: blocks until Release. Later calls pass.
  void Hold();
  void Release();

  [[nodiscard]] std::vector<Request> requests() const;  // in the order in which they came
  [[nodiscard]] int connections() const;                // accepted in all
  [[nodiscard]] int open() const;                       // not closed by the client yet
  [[nodiscard]] int most_at_once() const;               // requests

 private:
  void Accept();
  void Serve(int fd);
  bool ReadRequest(int fd, std::string& pending, Request& request);

  const Handle handle_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool release_ = false;
  std::vector<Request> requests_;
  int connections_ = 0;
  int at_once_ = 0;
  int most_at_once_ = 0;
  std::set<int> fds_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace fencepost::testing
