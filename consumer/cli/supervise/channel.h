// Questions of a supervisor to a process that it started, over a pair of sockets that both have
// from the start: nobody else on the machine reaches it, and each end notices that the other has
// gone.
//
// A question is a path and a body, an answer a status (as of HTTP) and a text. A frame on the wire
// is three 32-bit numbers in the machine's order (the question's number, a status, the size) and
// that many bytes: of a question the path, a line end and the body.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "locking/base/fd.h"
#include "locking/base/stop_switch.h"

namespace fencepost::cli {

struct Question {
  std::string path;
  std::string body{};
};
struct Answer {
  int status = 200;
  std::string text;
};

// The process's end. A thread of its own answers one question after the other.
class AnsweringEnd {
 public:
  // `answer` is called on that thread, as is `gone`, once, when there is nobody any more who asks.
  AnsweringEnd(Fd fd, std::function<Answer(std::string_view path, std::string_view body)> answer,
               std::function<void()> gone);
  ~AnsweringEnd();
  AnsweringEnd(const AnsweringEnd&) = delete;
  AnsweringEnd& operator=(const AnsweringEnd&) = delete;

 private:
  void Serve();
  bool ReadAll(char* to, std::size_t size);
  bool WriteAll(std::string_view bytes);
  bool AwaitReady(short events);

  Fd fd_;
  const std::function<Answer(std::string_view, std::string_view)> answer_;
  const std::function<void()> gone_;
  StopSwitch stop_;
  std::thread thread_;  // last
};

// The supervisor's end. Thread-safe: those who ask wait for each other.
class AskingEnd {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::uint32_t kLargestAnswer = 256U << 20U;
  // Who owes so many answers is asked nothing more: frozen for a day, it would have to answer that
  // day's questions before the next one.
  static constexpr int kMostUnanswered = 8;

  explicit AskingEnd(Fd fd);

  // A question that is out. Others wait until it goes.
  class Asked {
   public:
    // Nothing: no answer until then, or the other end has gone or sends what is no answer. An
    // answer that comes later is thrown away.
    std::optional<Answer> Await(Time deadline);

   private:
    friend class AskingEnd;
    Asked(AskingEnd& end, std::unique_lock<std::timed_mutex> lock, std::uint32_t number)
        : end_(&end), lock_(std::move(lock)), number_(number) {}
    AskingEnd* end_;
    std::unique_lock<std::timed_mutex> lock_;
    std::uint32_t number_;
  };
  std::optional<Asked> Begin(const Question& question, Time deadline);
  std::optional<Answer> Ask(const Question& question, Time deadline);

 private:
  std::optional<Answer> TakeAnswer(std::uint32_t number);
  bool ReadMore(Time deadline);

  std::timed_mutex mutex_;  // guards what follows
  Fd fd_;
  std::string in_;  // read and not taken yet
  std::uint32_t last_ = 0;
  int unanswered_ = 0;
};

// Two connected ends. Closed at exec. Throws std::system_error.
struct SocketPair {
  Fd asking, answering;
};
SocketPair MakeSocketPair();

}  // namespace fencepost::cli
