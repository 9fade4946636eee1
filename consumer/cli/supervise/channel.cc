#include "consumer/cli/supervise/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "locking/base/planted.h"

namespace fencepost::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Head {
  std::uint32_t number = 0;
  std::uint32_t status = 0;
  std::uint32_t size = 0;
};
constexpr std::uint32_t kLargestQuestion = 64U << 10U;

std::string Frame(Head head, std::string_view text) {
  head.size = static_cast<std::uint32_t>(text.size());
  std::string frame(sizeof head, '\0');
  std::memcpy(frame.data(), &head, sizeof head);
  return frame.append(text);
}

Head HeadOf(std::string_view bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

int MillisUntil(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
}

}  // namespace

SocketPair MakeSocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {.asking = Fd(ends[0]), .answering = Fd(ends[1])};
}

AnsweringEnd::AnsweringEnd(Fd fd, std::function<Answer(std::string_view, std::string_view)> answer,
                           std::function<void()> gone)
    : fd_(std::move(fd)),
      answer_(std::move(answer)),
      gone_(std::move(gone)),
      thread_([this] { Serve(); }) {}

AnsweringEnd::~AnsweringEnd() {
  stop_.Stop();
  thread_.join();
}

void AnsweringEnd::Serve() {
  for (;;) {
    std::string bytes(sizeof(Head), '\0');
    if (!ReadAll(bytes.data(), bytes.size())) break;
    const Head head = HeadOf(bytes);
    if (head.size > kLargestQuestion) break;
    std::string question(head.size, '\0');
    if (!ReadAll(question.data(), question.size())) break;
    const std::size_t line = std::min(question.find('\n'), question.size());
    const std::string_view text = question;
    const Answer answer =
        answer_(text.substr(0, line), text.substr(std::min(line + 1, text.size())));
    const auto status = static_cast<std::uint32_t>(answer.status);
    if (!WriteAll(Frame({.number = head.number, .status = status}, answer.text))) break;
  }
  if (!stop_.stopped()) gone_();
}

bool AnsweringEnd::AwaitReady(short events) {
  for (;;) {
    std::array<pollfd, 2> fds{{{fd_.get(), events, 0}, {stop_.fd(), POLLIN, 0}}};
    const int ready = poll(fds.data(), fds.size(), -1);
    if (stop_.stopped()) return false;
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool AnsweringEnd::ReadAll(char* to, std::size_t size) {
  while (size > 0) {
    if (!AwaitReady(POLLIN)) return false;
    const ssize_t n = recv(fd_.get(), to, size, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return false;
    if (n < 0) continue;
    to += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool AnsweringEnd::WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!AwaitReady(POLLOUT)) return false;
    const ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

AskingEnd::AskingEnd(Fd fd) : fd_(std::move(fd)) {}

std::optional<AskingEnd::Asked> AskingEnd::Begin(const Question& question, Time deadline) {
  std::unique_lock lock(mutex_, deadline);
  if (!lock) return std::nullopt;
  while (ReadMore({})) {  // what is there already: answers that came too late
  }
  (void)TakeAnswer(0);  // which has no question
  if (!fd_.open() || unanswered_ >= kMostUnanswered) return std::nullopt;
  // A question is small and there is one at a time: one that finds no room is to a process that
  // has not read for long.
  const std::string frame = Frame({.number = ++last_}, question.path + "\n" + question.body);
  const ssize_t sent = send(fd_.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return std::nullopt;
  if (static_cast<std::size_t>(sent) < frame.size()) {
    fd_.Close();
    return std::nullopt;
  }
  ++unanswered_;
  return Asked(*this, std::move(lock), last_);
}

std::optional<Answer> AskingEnd::Ask(const Question& question, Time deadline) {
  auto asked = Begin(question, deadline);
  if (!asked) return std::nullopt;
  return asked->Await(deadline);
}

std::optional<Answer> AskingEnd::Asked::Await(Time deadline) {
  std::optional<Answer> answer;
  while (!(answer = end_->TakeAnswer(number_))) {
    if (!end_->ReadMore(deadline)) return std::nullopt;
  }
  return answer;
}

// Answers to earlier questions, whose time was up, go.
std::optional<Answer> AskingEnd::TakeAnswer(std::uint32_t number) {
  while (in_.size() >= sizeof(Head)) {
    const Head head = HeadOf(in_);
    if (head.size > kLargestAnswer) fd_.Close();  // that is no answer
    if (!fd_.open() || in_.size() < sizeof head + head.size) return std::nullopt;
    Answer answer{static_cast<int>(head.status), in_.substr(sizeof head, head.size)};
    in_.erase(0, sizeof head + head.size);
    --unanswered_;
    if (head.number == number || Planted("late_answer_is_taken")) return answer;
  }
  return std::nullopt;
}

bool AskingEnd::ReadMore(Time deadline) {
  for (;;) {
    if (!fd_.open()) return false;
    pollfd waiting{fd_.get(), POLLIN, 0};
    const int ready = poll(&waiting, 1, MillisUntil(deadline));
    if (ready == 0 || (ready < 0 && errno != EINTR)) return false;
    if (ready < 0) continue;
    // Not by way of the stack: that of an HTTP server's thread is small.
    constexpr std::size_t kAtOnce = 65'536;
    const std::size_t before = in_.size();
    in_.resize(before + kAtOnce);
    const ssize_t n = recv(fd_.get(), in_.data() + before, kAtOnce, MSG_DONTWAIT);
    in_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n > 0) return true;
    if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
      fd_.Close();
      return false;
    }
  }
}

}  // namespace fencepost::cli
