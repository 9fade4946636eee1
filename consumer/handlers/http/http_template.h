// What handler.http makes of a record beside the body: texts with selectors in braces, as in
// https://api/orders/{json:/id}, parsed once and rendered for each record. A record changes
// segments of a url's path and values of its query, never scheme, user, host, port, fragment or the
// depth of its path. Pure; const calls on any thread, each with an Evaluator of its own.
//
// {{ and }} stand for a brace. An optional selector that finds nothing leaves out all that it is
// in: the parameter of the query, the header.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/pipeline/handler_options.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

struct TemplateProblem {
  std::string selector;  // what the braces hold; empty: it is about the text, "has …"
  std::string why;       // what is wrong and what to do, without anything of the text
  [[nodiscard]] std::string Text() const { return (selector.empty() ? "" : "has {…}: ") + why; }
};
// Why no request can have it; empty: it can.
std::string_view RequestSelectorProblem(const Selector& selector);

// Percent-encoded, but for what RFC 3986 (2.3) does not reserve.
void AppendEncoded(std::string_view bytes, std::string& out);

// What the value of a header can hold: no control characters.
bool IsPrintable(std::string_view text);

struct TemplatePart {
  std::string literal;
  std::optional<Selector> selector;  // instead
};
using TemplateParts = std::vector<TemplatePart>;

class HttpUrl {
 public:
  // `query` is added to what the url has.
  static tl::expected<HttpUrl, TemplateProblem> Parse(std::string_view text,
                                                      const std::vector<Column>& query);
  // It is the same for every record.
  [[nodiscard]] bool constant() const { return constant_; }
  // The constant one; else an example, with x for each selector.
  [[nodiscard]] std::string Text() const;
  // Error: one line with nothing of the record, why it is bad. `evaluator` has begun with it.
  tl::expected<std::string, std::string> Render(Evaluator& evaluator) const;

 private:
  struct Piece {
    char before = '/';  // '?' and '&': of the query
    TemplateParts parts;
    std::string key;  // of the pipeline file
    [[nodiscard]] bool OfPath() const { return before == '/'; }
  };
  std::optional<TemplateProblem> Add(const TemplatePart& part);
  void AddLiteral(std::string_view literal);
  void AddQuery(const Column& column);

  std::string origin_;  // scheme, user, host and port
  std::vector<Piece> pieces_;
  bool constant_ = true;
  bool ended_ = false;  // at the fragment, which is not sent
};

class HttpHeader {
 public:
  // A text that is nothing but json:/POINTER, key:/POINTER, record:/POINTER or header:NAME is that
  // selector, without braces.
  static tl::expected<HttpHeader, TemplateProblem> Parse(const std::string& name,
                                                         std::string_view text);
  [[nodiscard]] bool constant() const;
  [[nodiscard]] const std::string& name() const { return name_; }
  // nullopt: it is left out. Error: as HttpUrl's.
  tl::expected<std::optional<std::string>, std::string> Render(Evaluator& evaluator) const;
  // Of a constant one.
  [[nodiscard]] std::string Text() const;

 private:
  std::string name_;
  TemplateParts parts_;
};

}  // namespace fencepost::consumer
