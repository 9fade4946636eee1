#include "config/read/tree.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "locking/base/check.h"

namespace fencepost::config {
namespace {

constexpr std::size_t kMaxDepth = 32;

// YAML allows a ? inside a plain value between {} or [], and the parser does not: this byte, which
// no pipeline file needs, stands for it while the file is parsed.
constexpr char kQuestionMark = '\x7f';
// So many are looked for in a file: each is a parse.
constexpr int kQuestionMarks = 256;

// Ends the parse from within an event; what is wrong was told already.
struct Stop {};

// Finds the byte at a place.
class SourceLines {
 public:
  SourceLines(std::string_view text, int source) : text_(text), source_(source) {
    starts_.push_back(text.starts_with("\xef\xbb\xbf") ? 3 : 0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') starts_.push_back(i + 1);
    }
  }
  [[nodiscard]] Place PlaceOf(const YAML::Mark& mark) const {
    return mark.is_null() ? Place{1, 1, source_} : Place{mark.line + 1, mark.column + 1, source_};
  }
  [[nodiscard]] bool Hold(char byte) const { return text_.find(byte) != text_.npos; }
  // Past the text's end: there is none.
  [[nodiscard]] std::size_t ByteOf(Place place) const {
    const auto line = static_cast<std::size_t>(place.line - 1);
    return line < starts_.size() ? starts_[line] + static_cast<std::size_t>(place.col - 1)
                                 : text_.size();
  }
  [[nodiscard]] char At(Place place) const {
    const std::size_t at = ByteOf(place);
    return at < text_.size() ? text_[at] : '\0';
  }
  // Whether the quoted text that starts at a place ends: the parser takes the end of the file for
  // its end.
  [[nodiscard]] bool QuoteEnds(Place place) const {
    const char quote = At(place);
    if (quote != '"' && quote != '\'') return true;
    for (std::size_t at = ByteOf(place) + 1; at < text_.size(); ++at) {
      const bool doubled = text_[at] == '\'' && text_.substr(at).starts_with("''");
      if (quote == '"' ? text_[at] == '\\' : doubled) {
        ++at;
      } else if (text_[at] == quote) {
        return true;
      }
    }
    return false;
  }
  // Where the plain value inside {} or [] starts that the parser refused at this place for a ?, {
  // or } in it; nullopt: it refused something else.
  [[nodiscard]] std::optional<Place> UnquotedValue(Place refused) const {
    constexpr std::string_view kMustBeQuoted = "?{}";
    constexpr std::string_view kEndsAValue = " \t\n,[]{}";
    if (kMustBeQuoted.find(At(refused)) == kMustBeQuoted.npos) return std::nullopt;
    Place start = refused;
    while (start.col > 1 && kEndsAValue.find(At({start.line, start.col - 1})) == kEndsAValue.npos)
      --start.col;
    const bool quoted = At(start) == '"' || At(start) == '\'';
    return start.col < refused.col && !quoted ? std::optional(start) : std::nullopt;
  }
  // Whether a tab is between the start of the line and its text.
  [[nodiscard]] bool IndentedByTab(int line) const {
    for (Place at{line, 1};; ++at.col) {
      const char c = At(at);
      if (c == '\t') return true;
      if (c != ' ') return false;
    }
  }

 private:
  std::string_view text_;
  int source_;
  std::vector<std::size_t> starts_;
};

class Builder : public YAML::EventHandler {
 public:
  Builder(const SourceLines& lines, Findings& findings) : lines_(lines), findings_(findings) {}

  std::optional<Node> root;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    findings_.Error(lines_.PlaceOf(mark), "yaml", "a pipeline file holds one document only");
    throw Stop();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    Attach(Start(Node::Kind::kNull, mark, ""));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    findings_.Error(lines_.PlaceOf(mark), "alias", "aliases are not allowed: write the value out");
    Node node;
    node.kind = Node::Kind::kScalar;
    node.at = lines_.PlaceOf(mark);
    Attach(std::move(node));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    Node node = Start(Node::Kind::kScalar, mark, tag);
    node.text = value;
    node.plain = tag == "?";
    if (node.plain && !lines_.Hold(kQuestionMark)) {
      std::ranges::replace(node.text, kQuestionMark, '?');
    }
    if (!lines_.QuoteEnds(node.at)) {
      findings_.Error(node.at, "yaml", "not YAML: the quote is never closed");
      throw Stop();
    }
    Attach(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(Start(Node::Kind::kList, mark, tag));
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(Start(Node::Kind::kMap, mark, tag));
  }
  void OnMapEnd() override { Close(); }
  void OnAnchor(const YAML::Mark& mark, const std::string& /*name*/) override {
    findings_.Error(lines_.PlaceOf(mark), "anchor", "anchors are not allowed: write the value out");
  }

 private:
  struct Frame {
    Node node;
    std::optional<Node> key;  // a map's key that waits for its value
    std::set<std::string> seen;
  };

  Node Start(Node::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    Node node;
    node.kind = kind;
    node.at = lines_.PlaceOf(mark);
    // The parser drops a tag on nothing, and tells a lone "!" like a quoted text.
    const bool tagged = (tag != "" && tag != "?" && tag != "!") || lines_.At(node.at) == '!';
    if (tagged) findings_.Error(node.at, "tag", "tags are not allowed: leave it out");
    return node;
  }

  void Open(Node node) {
    if (frames_.size() >= kMaxDepth) {
      findings_.Error(node.at, "yaml", "nested deeper than {} levels", kMaxDepth);
      throw Stop();
    }
    frames_.push_back(Frame{.node = std::move(node), .key = {}, .seen = {}});
  }

  void Close() {
    FENCEPOST_CHECK(!frames_.empty(), "the parser closed what it never opened");
    Node node = std::move(frames_.back().node);
    frames_.pop_back();
    Attach(std::move(node));
  }

  void Attach(Node node) {
    if (frames_.empty()) {
      root = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == Node::Kind::kList) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.key) {
      frame.key = std::move(node);
    } else {
      AddEntry(frame, *std::exchange(frame.key, std::nullopt), std::move(node));
    }
  }

  void AddEntry(Frame& frame, Node key, Node value) {
    if (key.kind != Node::Kind::kScalar) {
      findings_.Error(key.at, "yaml", "a key must be a plain text");
    } else if (!frame.seen.insert(key.text).second) {
      findings_.Error(key.at, "duplicate-key", "the key \"{}\" is given twice", key.text);
    } else {
      frame.node.entries.push_back({std::move(key), std::move(value)});
    }
  }

  const SourceLines& lines_;
  Findings& findings_;
  std::vector<Frame> frames_;
  int documents_ = 0;
};

void Parse(const std::string& text, Builder& builder) {
  std::istringstream input(text);
  YAML::Parser parser(input);
  while (parser.HandleNextDocument(builder)) {
  }
}

// The text, with kQuestionMark where the parser would refuse a ? that YAML allows.
std::string ParsableText(std::string_view text, const SourceLines& lines, const Findings& told) {
  std::string parsable(text);
  if (lines.Hold(kQuestionMark)) return parsable;
  for (int i = 0; i < kQuestionMarks; ++i) {
    Findings ignored = told;
    Builder builder(lines, ignored);
    try {
      Parse(parsable, builder);
      return parsable;
    } catch (const YAML::Exception& error) {
      const Place at = lines.PlaceOf(error.mark);
      if (lines.At(at) != '?' || !lines.UnquotedValue(at)) return parsable;
      parsable[lines.ByteOf(at)] = kQuestionMark;
    } catch (const Stop&) {
      return parsable;
    }
  }
  return parsable;
}

void TellParserError(const YAML::Exception& error, const SourceLines& lines, Findings& findings) {
  const Place at = lines.PlaceOf(error.mark);
  if (const auto unquoted = lines.UnquotedValue(at)) {
    findings.Error(*unquoted, "quoting",
                   "inside {} and [] YAML needs values with { or } quoted, as in \"${VAR}\"");
  } else if (error.msg.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR)) {
    findings.Error(at, "alias", "aliases are not allowed: write the value out");
  } else if (lines.IndentedByTab(at.line)) {
    findings.Error({at.line, 1, at.source}, "yaml", "not YAML: a tab cannot indent, use spaces");
  } else {
    findings.Error(at, "yaml", "not YAML: " + error.msg);
  }
}

}  // namespace

std::optional<Node> PairOf(const Node& map) {
  if (map.entries.size() != 1) return std::nullopt;
  const auto& [key, value] = map.entries.front();
  std::optional<Node> pair = value.kind == Node::Kind::kScalar ? value : PairOf(value);
  if (!pair) return std::nullopt;
  pair->at = map.at;
  pair->text.insert(0, key.text + ":");
  return pair;
}

std::optional<Node> ParseValue(std::string_view text, int source, Findings& findings) {
  const SourceLines lines(text, source);
  Builder builder(lines, findings);
  try {
    Parse(ParsableText(text, lines, findings), builder);
  } catch (const YAML::Exception& error) {
    TellParserError(error, lines, findings);
    return std::nullopt;
  } catch (const Stop&) {
    return std::nullopt;
  }
  if (!builder.root) builder.root.emplace().at = {1, 1, source};
  return std::move(builder.root);
}

std::optional<Node> ParseTree(std::string_view text, int source, Findings& findings) {
  std::optional<Node> root = ParseValue(text, source, findings);
  if (!root || root->kind == Node::Kind::kMap) return root;
  if (root->kind != Node::Kind::kNull) {
    findings.Error(root->at, "yaml", "a pipeline is a map of keys, as in name: orders");
  } else {
    findings.Error({1, 1, source}, "yaml",
                   source == 0 ? "the file is empty; fencepost create prints a pipeline to start "
                                 "from"
                               : "the file is empty: leave out --with");
  }
  return std::nullopt;
}

}  // namespace fencepost::config
