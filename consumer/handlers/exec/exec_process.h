// One child process with pipes on stdin, stdout and stderr, read and written by lines without ever
// blocking. It leads a process group of its own, and dies with the thread that started it, however
// that ends; the group gets SIGKILL when this object kills it or goes. One thread, the one that
// called Start; Linux.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "locking/base/error.h"
#include "locking/base/fd.h"

namespace fencepost::consumer {

// Bytes of a pipe, cut into lines.
class PipeLines {
 public:
  PipeLines(Fd fd, std::size_t max_line) : fd_(std::move(fd)), max_line_(max_line) {}
  // Takes what is there, a MiB at most; true: there may be more. Closes at the end of the pipe.
  bool Read();
  std::optional<std::string> Next();  // the next line, without its newline
  // Asked when Next gave nothing: the line that has begun is too long, and no more of it is read.
  [[nodiscard]] bool too_long() const { return buffer_.size() - at_ > max_line_; }
  // Asked when Next gave nothing: a line has begun.
  [[nodiscard]] bool has_part() const { return buffer_.size() > at_; }
  std::string TakePart();  // what there is of a line without its newline
  [[nodiscard]] bool open() const { return fd_.open(); }
  [[nodiscard]] int fd() const { return fd_.get(); }  // -1: at its end

 private:
  Fd fd_;
  std::size_t max_line_;
  std::string buffer_;
  std::size_t at_ = 0;       // where the next line starts
  std::size_t scanned_ = 0;  // no newline between at_ and here
};

class ExecProcess {
 public:
  struct Command {
    std::vector<std::string> words;        // words[0] is a path
    std::vector<std::string> environment;  // NAME=VALUE, all of it
  };
  // Error: it cannot be run (also: its interpreter is not there).
  static tl::expected<std::unique_ptr<ExecProcess>, Error> Start(const Command& command);
  ~ExecProcess();
  ExecProcess(const ExecProcess&) = delete;
  ExecProcess& operator=(const ExecProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void Send(const std::string& line);  // as much as goes; Write sends the rest
  void Write();                        // as much as goes; a closed pipe drops it
  [[nodiscard]] bool unsent() const { return in_.open() && sent_ < unsent_.size(); }
  // No byte of the line that was sent last has been read. Asked once it has ended.
  [[nodiscard]] bool Unread() const { return Unconsumed() >= last_line_; }
  void CloseInput() { in_.Close(); }
  void Kill();  // the group, with SIGKILL

  // How it ended ("with exit code 3", "by signal 9 (Killed)"), once it has. Does not wait.
  std::optional<std::string> Ended();

  PipeLines& out() { return out_; }
  PipeLines& err() { return err_; }
  [[nodiscard]] int in_fd() const { return in_.get(); }
  [[nodiscard]] int end_fd() const { return end_.get(); }  // readable: it has ended

 private:
  ExecProcess(pid_t pid, Fd end, Fd in, Fd out, Fd err);
  // Bytes that were sent and not read: in the pipe, and those that did not go into it.
  [[nodiscard]] std::size_t Unconsumed() const;

  pid_t pid_;
  Fd end_;
  Fd in_;
  PipeLines out_;
  PipeLines err_;
  std::string unsent_;
  std::size_t sent_ = 0;
  std::size_t last_line_ = 0;   // bytes
  std::size_t unconsumed_ = 0;  // counted when the pipe was closed; what was sent since added
  std::optional<std::string> ended_;
};

// Where a command's program is: as written when it has a slash, else along PATH.
tl::expected<std::string, Error> FindProgram(const std::string& name);

}  // namespace fencepost::consumer
