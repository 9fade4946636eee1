#include "consumer/encode/json_tree.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/decode/decoder.h"

namespace fencepost::consumer {
namespace {

using Kind = JsonValue::Kind;
using Json = nlohmann::json;

// The names of its methods are nlohmann-json's (json_sax). False ends the parsing.
class Builder : public nlohmann::json_sax<Json> {
 public:
  // A list that grows is there twice for a moment.
  explicit Builder(std::size_t text) : most_(MaxMemoryOf(text) / (2 * sizeof(JsonValue))) {}

  bool null() override { return Add({}); }
  bool boolean(bool value) override { return Add({.kind = value ? Kind::kTrue : Kind::kFalse}); }
  bool number_integer(std::int64_t value) override { return Number(fmt::format("{}", value)); }
  bool number_unsigned(std::uint64_t value) override { return Number(fmt::format("{}", value)); }
  bool number_float(double /*value*/, const std::string& text) override { return Number(text); }
  bool string(std::string& value) override {
    return Add({.kind = Kind::kString, .text = std::move(value)});
  }
  bool binary(Json::binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return Open(Kind::kObject); }
  bool start_array(std::size_t /*size*/) override { return Open(Kind::kArray); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& value) override {
    open_.back()->names.push_back(std::move(value));
    return true;
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

  JsonTree tree;
  std::string_view problem = "is not JSON";

 private:
  bool Number(std::string text) { return Add({.kind = Kind::kNumber, .text = std::move(text)}); }
  // Only the last member of each open value can still grow, so the others stay where they are.
  JsonValue* Put(JsonValue value) {
    if (open_.empty()) {
      tree.top = std::move(value);
      return &tree.top;
    }
    return &open_.back()->members.emplace_back(std::move(value));
  }
  bool Fail(std::string_view why) {
    problem = why;
    return false;
  }
  bool Count() { return ++tree.values <= most_ || Fail("has too many values"); }
  bool Add(JsonValue value) {
    if (!Count()) return false;
    Put(std::move(value));
    return true;
  }
  bool Open(Kind kind) {
    if (open_.size() >= static_cast<std::size_t>(kMaxDepth)) return Fail("is nested too deeply");
    if (!Count()) return false;
    open_.push_back(Put({.kind = kind}));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const std::size_t most_;
  std::vector<JsonValue*> open_;
};

}  // namespace

tl::expected<JsonTree, std::string> ParseJsonTree(std::string_view text) {
  Builder builder(text.size());
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder.tree);
  return tl::unexpected(std::string(builder.problem));
}

std::string_view NameOf(JsonValue::Kind kind) {
  static constexpr std::array<std::string_view, 7> kNames{
      "null", "a boolean", "a boolean", "a number", "a text", "an array", "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace fencepost::consumer
