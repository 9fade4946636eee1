#include "locking/base/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "locking/base/fd.h"

namespace fencepost {
namespace {

constexpr std::size_t kMost = std::size_t{64} << 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Up to a byte more than may be. Error: errno.
tl::expected<std::string, int> ReadSome(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.open()) return tl::unexpected(errno);
  std::string text(kMost + 1, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(fd.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace

std::string WithoutMarks(std::string text) {
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  for (auto at = text.find("\r\n"); at != std::string::npos; at = text.find("\r\n", at)) {
    text.erase(at, 1);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

std::string_view ProblemOfLine(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  if (text.find('\0') != std::string_view::npos) return "holds a NUL byte";
  if (text.find_first_of("\r\n") != std::string_view::npos) return "holds a line break";
  if (text.starts_with(kByteOrderMark)) return "begins with a byte order mark";
  if (text.empty() || (!blank(text.front()) && !blank(text.back()))) return "";
  return "begins or ends with a blank: remove it, or, if it is meant, write it in the pipeline "
         "file";
}

Secret Secret::OfFile(std::string path) {
  Secret secret;
  secret.path_ = std::move(path);
  return secret;
}

tl::expected<std::string, std::string> Secret::Read() const {
  if (path_.empty()) return text_;
  const auto bad = [this](std::string_view why) {
    return tl::unexpected("the file " + path_ + ": " + std::string(why));
  };
  auto text = ReadSome(path_);
  if (!text) return bad(std::strerror(text.error()));
  if (text->size() > kMost) return bad("is larger than 64 KiB");
  std::string line = WithoutMarks(*std::move(text));
  if (line.empty()) return bad("is empty");
  if (const auto problem = ProblemOfLine(line); !problem.empty()) return bad(problem);
  return line;
}

}  // namespace fencepost
