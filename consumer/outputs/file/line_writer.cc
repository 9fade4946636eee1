#include "consumer/outputs/file/line_writer.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace fencepost::consumer {

void LineWriter::Use(int fd, bool own) {
  fd_ = fd;
  own_ = own;

  struct stat about {};
  file_ = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  torn_ = own_ && file_ && StaysWithinALine();
}

tl::expected<void, int> LineWriter::Append(std::string_view lines) {
  if (stop_.stopped()) return tl::unexpected(EINTR);
  return own_ && file_ ? AppendToFile(lines) : AppendToStream(lines);
}

bool LineWriter::EndsWithinALine(off_t end) const {
  char last = '\n';
  return end > 0 && pread(fd_, &last, 1, end - 1) == 1 && last != '\n';
}

// A file grows page by page under a write that another process is still at: such an end moves on,
// that of a torn line stays.
bool LineWriter::StaysWithinALine() const {
  constexpr int kLooks = 5;
  constexpr int kBetween = 10;  // milliseconds
  off_t before = -1;
  for (int same = 0; same < kLooks;) {
    const off_t end = lseek(fd_, 0, SEEK_END);
    if (!EndsWithinALine(end)) return false;
    same = end == before ? same + 1 : 0;
    before = end;
    pollfd wake{stop_.fd(), POLLIN, 0};
    if (poll(&wake, 1, kBetween) > 0) return true;  // interrupted: nothing will be written
  }
  return true;
}

tl::expected<void, int> LineWriter::AppendToFile(std::string_view lines) {
  for (int without_progress = 0; !lines.empty();) {
    const bool lead = torn_;
    if (lead) joined_.assign("\n").append(lines);
    const std::string_view text = lead ? std::string_view(joined_) : lines;
    const ssize_t written = write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return tl::unexpected(errno);
    const auto length = static_cast<std::size_t>(written);
    if (length > 0) torn_ = text[length - 1] != '\n';
    // Where it landed: another process may have torn a line just before.
    const bool glued = !lead && EndsWithinALine(lseek(fd_, 0, SEEK_CUR) - written);
    std::size_t done = text.substr(0, length).rfind('\n') + 1;  // npos + 1 is 0
    if (lead && done > 0) --done;  // the newline in front is not of `lines`
    if (glued) done = 0;
    lines.remove_prefix(done);
    without_progress = done > 0 ? 0 : without_progress + 1;
    if (without_progress > 2) return tl::unexpected(EIO);
  }
  return {};
}

tl::expected<void, int> LineWriter::WaitUntilWritable() const {
  for (;;) {
    if (stop_.stopped()) return tl::unexpected(EINTR);
    std::array<pollfd, 2> fds{{{fd_, POLLOUT, 0}, {stop_.fd(), POLLIN, 0}}};
    const int ready = poll(fds.data(), fds.size(), -1);
    if (ready < 0 && errno != EINTR) return tl::unexpected(errno);
    if (ready > 0 && fds[0].revents != 0) return {};
  }
}

// A pipe that is writable takes PIPE_BUF bytes without waiting; more could wait for a reader beyond
// all interruption. The descriptor is not made non-blocking: others may share it.
tl::expected<void, int> LineWriter::AppendToStream(std::string_view lines) {
  if (torn_) {
    joined_.assign("\n").append(lines);
    lines = joined_;
  }
  const std::size_t most = file_ ? lines.size() : PIPE_BUF;
  while (!lines.empty()) {
    if (auto ready = WaitUntilWritable(); !ready) return ready;
    const ssize_t written = write(fd_, lines.data(), std::min(lines.size(), most));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) return tl::unexpected(errno);
    const auto length = static_cast<std::size_t>(written);
    if (length > 0) torn_ = lines[length - 1] != '\n';
    lines.remove_prefix(length);
  }
  return {};
}

}  // namespace fencepost::consumer
