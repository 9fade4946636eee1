// Appends whole lines to a file descriptor. One thread, but Interrupt.
//
// Several processes may append to one file at once, without a lock that a frozen one could hold. A
// write that ends within a line (the disk is full, the process dies) leaves a torn line there. Who
// opens the file next ends it with a newline; who has it open already, and finds its own first line
// glued to a torn one, writes all its lines again. So only lines that are whole JSON objects count:
// a torn line never is one, alone or glued, for its braces do not match.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>
#include <tl/expected.hpp>

#include "locking/base/wake_up.h"

namespace fencepost::consumer {

class LineWriter {
 public:
  LineWriter() = default;
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Where the next lines go. The descriptor stays the caller's. Own: opened by the caller alone,
  // for appending and reading, so that what is before its lines can be looked at.
  void Use(int fd, bool own);
  // Writes all lines, with one write() where the system takes them at once. The error is an errno
  // (EINTR: interrupted); some of the lines may have been written then.
  tl::expected<void, int> Append(std::string_view lines);

  // Any thread. For shutdown: a write that waits for a slow reader of a pipe ends.
  void Interrupt() { stop_.Stop(); }
  [[nodiscard]] bool interrupted() const { return stop_.stopped(); }

 private:
  tl::expected<void, int> AppendToFile(std::string_view lines);
  tl::expected<void, int> AppendToStream(std::string_view lines);
  tl::expected<void, int> WaitUntilWritable() const;
  [[nodiscard]] bool EndsWithinALine(off_t end) const;
  [[nodiscard]] bool StaysWithinALine() const;

  int fd_ = -1;
  bool own_ = false;
  bool file_ = false;  // a regular one
  bool torn_ = false;  // the next line needs a newline in front
  std::string joined_;
  StopSwitch stop_;
};

}  // namespace fencepost::consumer
