#include "consumer/handlers/http/http_template.h"

#include <strings.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_text.h"

namespace fencepost::consumer {
namespace {

// Servers take some KiB. libcurl takes no url of more than 8 MB.
constexpr std::size_t kMostRendered = std::size_t{64} << 10;
constexpr std::string_view kTooLong = "is longer than 64 KiB";

tl::unexpected<TemplateProblem> Problem(std::string_view selector, std::string_view why) {
  return tl::unexpected(TemplateProblem{std::string(selector), std::string(why)});
}

// nullptr: it is the same for every record.
const Selector* FirstSelector(const TemplateParts& parts) {
  const auto first = std::ranges::find_if(
      parts, [](const TemplatePart& part) { return part.selector.has_value(); });
  return first == parts.end() ? nullptr : &*first->selector;
}

tl::expected<Selector, TemplateProblem> ParseSelector(std::string_view text) {
  if (text.empty()) return Problem("", "has braces without a selector, as in {json:/id}");
  auto selector = Selector::Parse(text);
  if (!selector) return Problem(text, selector.error());
  if (const auto why = RequestSelectorProblem(*selector); !why.empty()) return Problem(text, why);
  return std::move(*selector);
}

// Takes {SELECTOR} off the front of `text`.
tl::expected<Selector, TemplateProblem> TakeSelector(std::string_view& text) {
  const std::size_t end = text.find_first_of("{}", 1);
  if (end == std::string_view::npos || text[end] == '{') {
    return Problem("", "has a { that is not closed; for the character write {{ (in a url %7B)");
  }
  const std::string_view inner = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return ParseSelector(inner);
}

// Two braces stand for one, unless somebody means a selector by them.
tl::expected<char, TemplateProblem> TakeBrace(std::string_view& text) {
  const char brace = text.front();
  text.remove_prefix(2);
  const std::string_view inner = text.substr(0, text.find('}'));
  if (brace == '{' && inner.size() < text.size() && Selector::Parse(inner)) {
    return Problem(inner, "it has two braces on each side, and a selector has one");
  }
  return brace;
}

tl::expected<TemplateParts, TemplateProblem> ParseTemplate(std::string_view text) {
  TemplateParts parts;
  const auto literal = [&]() -> std::string& {
    if (parts.empty() || parts.back().selector) parts.emplace_back();
    return parts.back().literal;
  };
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find_first_of("{}"), text.size());
    if (plain > 0) literal() += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    if (text.size() > 1 && text[1] == text[0]) {
      const auto brace = TakeBrace(text);
      if (!brace) return tl::unexpected(brace.error());
      literal() += *brace;
    } else if (text.front() == '}') {
      return Problem("", "has a } that closes nothing; for the character write }} (in a url %7D)");
    } else {
      auto selector = TakeSelector(text);
      if (!selector) return tl::unexpected(selector.error());
      parts.push_back({.literal = {}, .selector = std::move(*selector)});
    }
  }
  return parts;
}

// false: an optional selector finds nothing, and `out` has a part of the text.
template <typename Append>
tl::expected<bool, std::string> AppendParts(const TemplateParts& parts, Evaluator& evaluator,
                                            std::string& out, Append append) {
  std::string found;
  for (const TemplatePart& part : parts) {
    if (!part.selector) {
      out += part.literal;
      continue;
    }
    found.clear();
    const auto is_there = evaluator.Append(*part.selector, found);
    if (!is_there) return tl::unexpected(is_there.error());
    if (!*is_there && part.selector->optional) return false;
    if (!*is_there) return tl::unexpected(part.selector->InWords() + " is null");
    if (found.size() > kMostRendered) {
      return tl::unexpected(fmt::format("{} {}", part.selector->InWords(), kTooLong));
    }
    if (auto appended = append(part, found); !appended) return tl::unexpected(appended.error());
  }
  return true;
}

// What a server may take for no segment, or for a step up. A record has no % and no ;, so those are
// of the text: %2e is a dot, and some servers cut parameters off before they look at dots.
std::string_view SegmentProblem(std::string_view segment) {
  std::string name(segment.substr(0, segment.find(';')));
  for (std::size_t at = 0; (at = name.find('%', at)) != std::string::npos; ++at) {
    const std::string_view code = std::string_view(name).substr(at, 3);
    if (code == "%2e" || code == "%2E") name.replace(at, 3, ".");
  }
  if (name.empty()) return "would make a segment of the path empty";
  return name == "." || name == ".." ? "would make a segment of the path . or .." : "";
}

}  // namespace

void AppendEncoded(std::string_view bytes, std::string& out) {
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";  // RFC 3986, 2.3
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : bytes) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
}

std::string_view RequestSelectorProblem(const Selector& selector) {
  if (selector.omits) return "?default is for columns; ? leaves out what is not there";
  if (selector.kind == Selector::Kind::kPosition) {
    return "position is for record_id only; take record_id, or topic, partition and offset";
  }
  return selector.kind == Selector::Kind::kWorker ? "a request has no worker: leave it out" : "";
}

bool IsPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f;
  });
}

// --- the url -------------------------------------------------------------------------------------

tl::expected<HttpUrl, TemplateProblem> HttpUrl::Parse(std::string_view text,
                                                      const std::vector<Column>& query) {
  auto parts = ParseTemplate(text);
  if (!parts) return tl::unexpected(std::move(parts.error()));
  HttpUrl url;
  if (parts->empty()) parts->emplace_back();
  std::string& first = parts->front().literal;
  const std::size_t scheme = first.find("://");
  const std::size_t end =
      scheme == std::string::npos ? scheme : first.find_first_of("/?#", scheme + 3);
  if (FirstSelector(*parts) != nullptr && (parts->front().selector || end == std::string::npos)) {
    return Problem("",
                   "has a selector before its path: a record must not choose scheme, host, port or "
                   "user; for the character { write %7B");
  }
  url.origin_ = first.substr(0, end);
  first.erase(0, url.origin_.size());
  for (const TemplatePart& part : *parts) {
    if (auto problem = url.Add(part)) return tl::unexpected(std::move(*problem));
  }
  for (const Column& column : query) {
    const std::string_view why = RequestSelectorProblem(column.selector);
    if (!why.empty()) return Problem(column.selector.Text(), why);
    url.AddQuery(column);
  }
  return url;
}

void HttpUrl::AddQuery(const Column& column) {
  const bool first = std::ranges::all_of(pieces_, &Piece::OfPath);
  Piece& piece = pieces_.emplace_back(
      Piece{.before = first ? '?' : '&', .parts = {}, .key = "handler.http.query." + column.name});
  std::string& literal = piece.parts.emplace_back().literal;
  AppendEncoded(column.name, literal);
  literal += '=';
  if (column.selector.kind == Selector::Kind::kConstant) {
    AppendEncoded(column.selector.argument, literal);
  } else {
    piece.parts.push_back({.literal = {}, .selector = column.selector});
    constant_ = false;
  }
}

std::optional<TemplateProblem> HttpUrl::Add(const TemplatePart& part) {
  if (!part.selector) {
    if (part.literal.find_first_of("{}") != std::string::npos) {
      return TemplateProblem{"", "has {{ or }}: in a url the characters are %7B and %7D"};
    }
    AddLiteral(part.literal);
    return std::nullopt;
  }
  const auto problem = [&](std::string_view why) {
    return TemplateProblem{part.selector->Text(), std::string(why)};
  };
  if (ended_) return problem("it is behind the #, and a fragment is never sent: leave it out");
  Piece& piece = pieces_.back();
  const bool valued =
      !piece.parts.empty() && piece.parts.front().literal.find('=') != std::string::npos;
  if (piece.OfPath() && part.selector->optional) {
    return problem("it is optional, and no part of the path can be left out: leave the ? out");
  }
  if (!piece.OfPath() && !valued) {
    return problem("it is the name of a parameter, and only values may differ: write NAME={…}");
  }
  const std::string_view text = piece.parts.empty() ? "" : piece.parts.back().literal;
  if (text.substr(text.size() - std::min<std::size_t>(text.size(), 2)).find('%') != text.npos) {
    return problem("it is behind a % that has no two digits; for the character write %25");
  }
  piece.parts.push_back(part);
  constant_ = false;
  return std::nullopt;
}

void HttpUrl::AddLiteral(std::string_view literal) {
  for (const char c : literal) {
    ended_ = ended_ || c == '#';
    if (ended_) return;
    const bool of_path = pieces_.empty() || pieces_.back().OfPath();
    if (of_path ? c == '/' || c == '?' : c == '&') {
      pieces_.push_back({.before = c, .parts = {}, .key = "handler.http.url"});
      continue;
    }
    TemplateParts& parts = pieces_.back().parts;
    if (parts.empty() || parts.back().selector) parts.emplace_back();
    parts.back().literal += c;
  }
}

std::string HttpUrl::Text() const {
  std::string url = origin_;
  for (const Piece& piece : pieces_) {
    url += piece.before;
    for (const TemplatePart& part : piece.parts) url += part.selector ? "x" : part.literal;
  }
  return url;
}

tl::expected<std::string, std::string> HttpUrl::Render(Evaluator& evaluator) const {
  std::string url = origin_;
  bool asks = false;  // it has a ?
  for (const Piece& piece : pieces_) {
    const std::size_t before = url.size();
    url += piece.OfPath() ? '/' : asks ? '&' : '?';
    const auto append = [&](const TemplatePart&, std::string_view found) {
      AppendEncoded(found, url);
      return tl::expected<void, std::string>();
    };
    const auto bad = [&](std::string_view why) {
      return tl::unexpected(fmt::format("{}: {}", piece.key, why));
    };
    const auto is_there = AppendParts(piece.parts, evaluator, url, append);
    if (!is_there) return bad(is_there.error());
    if (const Selector* const of = FirstSelector(piece.parts); of != nullptr && piece.OfPath()) {
      const auto why = SegmentProblem(std::string_view(url).substr(before + 1));
      if (!why.empty()) return bad(fmt::format("{} {}", of->InWords(), why));
    }
    if (!piece.OfPath()) {
      const bool empty = !*is_there || url.size() == before + 1;
      if (empty) url.resize(before);
      asks = asks || !empty;
    }
    if (url.size() > kMostRendered) return bad(fmt::format("the url {}", kTooLong));
  }
  return url;
}

// --- headers -------------------------------------------------------------------------------------

tl::expected<HttpHeader, TemplateProblem> HttpHeader::Parse(const std::string& name,
                                                            std::string_view text) {
  HttpHeader header;
  header.name_ = name;
  const auto begins = [&](std::string_view prefix) { return text.starts_with(prefix); };
  const bool bare = begins("json:/") || begins("key:/") || begins("record:/") || begins("header:");
  if (bare && text.find_first_of("{}") == std::string_view::npos) {
    auto selector = ParseSelector(text);
    if (!selector) return tl::unexpected(std::move(selector.error()));
    header.parts_.push_back({.literal = {}, .selector = std::move(*selector)});
  } else {
    auto parts = ParseTemplate(text);
    if (!parts) return tl::unexpected(std::move(parts.error()));
    header.parts_ = std::move(*parts);
  }
  if (!header.constant() && strcasecmp(name.c_str(), "host") == 0) {
    return Problem("", "has a selector: a record must not choose the host");
  }
  return header;
}

bool HttpHeader::constant() const { return FirstSelector(parts_) == nullptr; }

std::string HttpHeader::Text() const {
  return parts_.empty() ? std::string() : parts_.front().literal;
}

tl::expected<std::optional<std::string>, std::string> HttpHeader::Render(
    Evaluator& evaluator) const {
  std::string value;
  const auto append = [&](const TemplatePart& part,
                          std::string_view found) -> tl::expected<void, std::string> {
    value += found;
    if (IsPrintable(found)) return {};
    return tl::unexpected(
        part.selector->InWords() +
        " has a control character, such as a line end, which no header can carry");
  };
  const auto bad = [&](std::string_view why) {
    return tl::unexpected(fmt::format("handler.http.headers.{}: {}", name_, why));
  };
  const auto is_there = AppendParts(parts_, evaluator, value, append);
  if (!is_there) return bad(is_there.error());
  if (!*is_there) return std::nullopt;
  if (value.size() > kMostRendered) return bad(fmt::format("the header {}", kTooLong));
  return std::string(Trimmed(value));
}

}  // namespace fencepost::consumer
