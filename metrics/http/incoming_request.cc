#include "metrics/http/incoming_request.h"

#include <algorithm>
#include <charconv>

namespace fencepost::metrics {
namespace {

constexpr std::string_view kEnd = "\r\n";

// Of a header's name (RFC 9110, token).
bool IsNameLetter(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != std::string_view::npos;
}

bool IsHostLetter(char c) {
  constexpr std::string_view kMarks = "-._:[]";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != std::string_view::npos;
}

bool IsControl(char c) {
  return c != '\t' && (static_cast<unsigned char>(c) < 0x20 || c == '\x7f');
}

std::string_view WithoutBlanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string InSmallLetters(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return small;
}

}  // namespace

bool IncomingRequest::Take(std::string_view bytes) {
  if (refusal_) return true;
  constexpr std::string_view kEmptyLine = "\r\n\r\n";
  const std::size_t seen = text_.size() - std::min(text_.size(), kEmptyLine.size() - 1);
  text_ += bytes;
  if (!length_) {
    const std::size_t end = text_.find(kEmptyLine, seen);
    const std::size_t head = end == std::string::npos ? text_.size() : end + kEmptyLine.size();
    if (head > most_head_) return Refuse(431, "the request line and the headers are too long");
    if (end == std::string::npos) return false;
    if (!ReadHead(std::string_view(text_).substr(0, end)) || !ReadLength()) return true;
    text_.erase(0, head);
  }
  if (text_.size() < *length_) return false;
  text_.resize(*length_);
  return true;
}

bool IncomingRequest::Refuse(int status, std::string_view why) {
  refusal_ = Refusal{status, why};
  return true;
}

bool IncomingRequest::ReadHead(std::string_view head) {
  for (bool first = true; !head.empty() || first; first = false) {
    const std::size_t end = std::min(head.find(kEnd), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + kEnd.size(), head.size()));
    if (std::ranges::any_of(line, IsControl)) {
      return !Refuse(400, "a line has a control character");
    }
    if (first) {
      line_ = line;
      const bool three_words = std::ranges::count(line, ' ') == 2 && !line.starts_with(' ') &&
                               !line.ends_with(' ') && line.find("  ") == line.npos;
      if (!three_words) return !Refuse(400, "the first line is not METHOD PATH HTTP/1.1");
      continue;
    }
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || name.empty() ||
        !std::ranges::all_of(name, IsNameLetter)) {
      return !Refuse(400, "a header is not NAME: VALUE");
    }
    headers_.emplace_back(InSmallLetters(name), WithoutBlanks(line.substr(colon + 1)));
  }
  const std::size_t hosts = Count("host");
  if (hosts > 1 || (hosts == 0 && line_.ends_with("HTTP/1.1"))) {
    return !Refuse(400, "the request needs one Host");
  }
  return std::ranges::all_of(Header("host"), IsHostLetter) ||
         !Refuse(400, "the Host is not HOST or HOST:PORT");
}

bool IncomingRequest::ReadLength() {
  length_ = 0;
  if (Has("transfer-encoding")) return !Refuse(411, "a body needs a Content-Length");
  if (!Has("content-length")) return true;
  const std::string_view text = Header("content-length");
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (Count("content-length") > 1 || text.empty() || end != text.data() + text.size() ||
      error == std::errc::invalid_argument) {
    return !Refuse(400, "the Content-Length is not a number, or there are several");
  }
  if (error != std::errc() || length > most_body_) return !Refuse(413, "the body is too long");
  length_ = length;
  return true;
}

std::string_view IncomingRequest::Header(std::string_view name) const {
  const std::string small = InSmallLetters(name);
  const auto found = std::ranges::find(headers_, small, [](const auto& h) { return h.first; });
  return found == headers_.end() ? std::string_view() : std::string_view(found->second);
}

std::size_t IncomingRequest::Count(std::string_view name) const {
  const std::string small = InSmallLetters(name);
  return static_cast<std::size_t>(
      std::ranges::count(headers_, small, [](const auto& h) { return h.first; }));
}

}  // namespace fencepost::metrics
