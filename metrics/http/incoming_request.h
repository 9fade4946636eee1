// One HTTP request as its bytes come in: until it is whole, or is refused. A value, without
// sockets.
//
// It is strict where servers and proxies differ about what a request is (RFC 9112): lines end with
// CR LF, no line is folded, a name stands right before its colon, a length is said once and in
// digits, HTTP/1.1 has exactly one Host. What follows a request is not looked at: the connection
// ends with the answer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fencepost::metrics {

struct Refusal {
  int status = 400;
  std::string_view why;  // a literal
};

class IncomingRequest {
 public:
  // Of the request line with its headers, and of the body, in bytes.
  IncomingRequest(std::size_t most_head, std::size_t most_body)
      : most_head_(most_head), most_body_(most_body) {}

  // Takes a piece. True: the request is whole or refused, and no more is taken.
  bool Take(std::string_view bytes);
  bool Refuse(int status, std::string_view why);  // true

  [[nodiscard]] bool begun() const { return !text_.empty() || length_; }
  [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }
  // Of a whole one.
  [[nodiscard]] const std::string& line() const { return line_; }  // without its end
  [[nodiscard]] const std::string& body() const { return text_; }
  // As sent, without the blanks around it; empty: there is none. Of several the first one.
  [[nodiscard]] std::string_view Header(std::string_view name) const;
  [[nodiscard]] bool Has(std::string_view name) const { return Count(name) > 0; }

 private:
  bool ReadHead(std::string_view head);  // false: refused
  bool ReadLength();                     // false: refused
  [[nodiscard]] std::size_t Count(std::string_view name) const;

  const std::size_t most_head_, most_body_;
  std::string text_;  // what came, and later the body
  std::string line_;
  std::vector<std::pair<std::string, std::string>> headers_;  // (name in small letters, value)
  std::optional<std::size_t> length_;                         // of the body, once the head is there
  std::optional<Refusal> refusal_;
};

}  // namespace fencepost::metrics
