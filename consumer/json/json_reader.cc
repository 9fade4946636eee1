#include "consumer/json/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "consumer/json/json_digest.h"
#include "consumer/json/json_text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

using simdjson::ondemand::json_type;

// An object or array, valid.
void AppendText(std::string_view text, bool minify, std::string& out) {
  if (!minify) {
    out.append(text);
    return;
  }
  const std::size_t before = out.size();
  out.resize(before + text.size() + simdjson::SIMDJSON_PADDING);
  std::size_t length = 0;
  const auto error = simdjson::minify(text.data(), text.size(), out.data() + before, length);
  FENCEPOST_CHECK(!error, simdjson::error_message(error));
  out.resize(before + length);
}

// An array index of RFC 6901: 0, or digits without a leading zero.
std::optional<std::size_t> ArrayIndex(std::string_view token) {
  if (token.empty() || token.size() > 9 || (token.size() > 1 && token.front() == '0')) return {};
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc() || end != token.data() + token.size()) return {};
  return index;
}

}  // namespace

std::string_view UnescapeToken(std::string_view token, std::string& scratch) {
  if (token.find('~') == std::string_view::npos) return token;
  scratch.clear();
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      scratch.push_back(token[i]);
    } else {
      scratch.push_back(token[++i] == '1' ? '/' : '~');
    }
  }
  return scratch;
}

std::string JsonPointerProblem(std::string_view pointer) {
  if (pointer.empty()) return "";
  if (pointer.front() != '/') return "a JSON pointer starts with '/'";
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] != '~') continue;
    if (i + 1 == pointer.size() || (pointer[i + 1] != '0' && pointer[i + 1] != '1')) {
      return "in a JSON pointer '~' is written ~0 and '/' inside a name ~1";
    }
  }
  return "";
}

void AppendPointerToken(std::string_view name, std::string& out) {
  for (const char c : name) {
    if (c == '~' || c == '/') {
      out.append(c == '~' ? "~0" : "~1");
    } else {
      out.push_back(c);
    }
  }
}

struct JsonReader::Impl {
  using Value = simdjson::ondemand::value;
  simdjson::ondemand::parser parser;
  simdjson::ondemand::parser checker;  // for DigestTree, while `document` stays where it is
  simdjson::ondemand::document document;
  std::vector<char> buffer;  // the value and SIMDJSON_PADDING bytes
  std::size_t length = 0;
  bool malformed = false;
  JsonType last_type = JsonType::kString;  // of what was appended last
  std::string problem;
  std::string scratch;
  std::string ignored;
  std::optional<std::uint64_t> digest;  // where one is asked for: of what was appended last

  void Malformed(std::string_view why) {
    malformed = true;
    problem = why;
  }
  bool Check(simdjson::error_code error) {
    if (error) Malformed(simdjson::error_message(error));
    return !error;
  }

  // On-Demand sees only what is on the way to the part that is asked for, and of the rest brackets.
  void Parse(std::string_view value) {
    const std::string_view why = JsonProblem(value);
    malformed = !why.empty();
    if (malformed) return Malformed(why);
    length = value.size();
    if (buffer.size() < length + simdjson::SIMDJSON_PADDING) {
      buffer.resize(length + simdjson::SIMDJSON_PADDING);
    }
    std::memcpy(buffer.data(), value.data(), length);
    std::memset(buffer.data() + length, ' ', simdjson::SIMDJSON_PADDING);
    Check(parser.iterate(buffer.data(), length, buffer.size()).get(document));
  }

  std::optional<bool> KeyIs(simdjson::ondemand::field& field, std::string_view want);
  JsonFound Step(Value& value, std::string_view token);
  JsonFound AtPointer(std::string_view pointer, Value& value);
  using MaybeDigest = std::optional<std::uint64_t>;
  MaybeDigest DigestOf(Value value);
  std::uint64_t DigestLiteral(std::string_view text);
  MaybeDigest DigestTree(std::string_view text);
  bool TakeTree(std::string_view text, Form form, std::string& out);
  bool AppendWhole(Form form, std::string& out, bool& null);
  bool AppendValue(Value value, Form form, std::string& out, bool& null);
  void AppendLiteral(std::string_view text, std::string& out, bool& null);
};

// nullopt: the key is malformed.
std::optional<bool> JsonReader::Impl::KeyIs(simdjson::ondemand::field& field,
                                            std::string_view want) {
  const char* raw = field.key().raw();
  const char* end = raw;
  const char* limit = buffer.data() + length;
  while (end < limit && *end != '"' && *end != '\\') ++end;
  if (end < limit && *end == '"') return std::string_view(raw, end - raw) == want;
  std::string_view key;
  if (!Check(field.unescaped_key().get(key))) return std::nullopt;
  return key == want;
}

// One step down. Kinds other than objects and arrays have no children.
JsonFound JsonReader::Impl::Step(Value& value, std::string_view token) {
  json_type type{};
  if (!Check(value.type().get(type))) return JsonFound::kMalformed;
  if (type == json_type::object) {
    simdjson::ondemand::object object;
    if (!Check(value.get_object().get(object))) return JsonFound::kMalformed;
    for (auto result : object) {
      simdjson::ondemand::field field;
      if (!Check(std::move(result).get(field))) return JsonFound::kMalformed;
      const std::optional<bool> same = KeyIs(field, token);
      if (!same) return JsonFound::kMalformed;
      if (!*same) continue;
      value = field.value();
      return JsonFound::kValue;
    }
    return JsonFound::kNothing;
  }
  if (type == json_type::array) {
    const std::optional<std::size_t> index = ArrayIndex(token);
    if (!index) return JsonFound::kNothing;
    simdjson::ondemand::array array;
    if (!Check(value.get_array().get(array))) return JsonFound::kMalformed;
    std::size_t at = 0;
    for (auto result : array) {
      if (!Check(result.error())) return JsonFound::kMalformed;
      if (at++ < *index) continue;
      return Check(std::move(result).get(value)) ? JsonFound::kValue : JsonFound::kMalformed;
    }
  }
  return JsonFound::kNothing;
}

JsonFound JsonReader::Impl::AtPointer(std::string_view pointer, Value& value) {
  document.rewind();
  json_type type{};
  if (!Check(document.type().get(type))) return JsonFound::kMalformed;
  if (type != json_type::object && type != json_type::array) return JsonFound::kNothing;
  if (!Check(document.get_value().get(value))) return JsonFound::kMalformed;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const JsonFound found = Step(value, UnescapeToken(pointer.substr(0, end), scratch));
    if (found != JsonFound::kValue) return found;
    pointer.remove_prefix(end);
  }
  return JsonFound::kValue;
}

// nullopt: malformed.
JsonReader::Impl::MaybeDigest JsonReader::Impl::DigestOf(Value value) {
  json_type type{};
  if (!Check(value.type().get(type))) return std::nullopt;
  std::string_view text;
  if (type == json_type::object) {
    simdjson::ondemand::object object;
    if (!Check(value.get_object().get(object))) return std::nullopt;
    DigestOfParts sum;
    for (auto result : object) {
      simdjson::ondemand::field field;
      if (!Check(std::move(result).get(field))) return std::nullopt;
      if (!Check(field.unescaped_key().get(text))) return std::nullopt;
      const std::uint64_t key = DigestText(JsonKind::kString, text);
      const MaybeDigest member = DigestOf(field.value());
      if (!member) return std::nullopt;
      sum.AddUnordered(DigestPair(JsonKind::kMember, key, *member));
    }
    return sum.Value(JsonKind::kObject);
  }
  if (type == json_type::array) {
    simdjson::ondemand::array array;
    if (!Check(value.get_array().get(array))) return std::nullopt;
    DigestOfParts all;
    for (auto result : array) {
      Value child;
      if (!Check(std::move(result).get(child))) return std::nullopt;
      const MaybeDigest element = DigestOf(child);
      if (!element) return std::nullopt;
      all.AddOrdered(*element);
    }
    return all.Value(JsonKind::kArray);
  }
  if (type != json_type::string) return DigestLiteral(value.raw_json_token());
  if (!Check(value.get_string().get(text))) return std::nullopt;
  return DigestText(JsonKind::kString, text);
}

std::uint64_t JsonReader::Impl::DigestLiteral(std::string_view text) {
  text = Trimmed(text);
  if (text == "null" || text == "true" || text == "false") return DigestText(JsonKind::kWord, text);
  scratch.clear();
  AppendCanonicalNumber(text, scratch);
  return DigestText(JsonKind::kNumber, scratch);
}

// `text` lies within the padded buffer.
JsonReader::Impl::MaybeDigest JsonReader::Impl::DigestTree(std::string_view text) {
  simdjson::ondemand::document whole;
  Value root;
  const std::size_t capacity = buffer.data() + buffer.size() - text.data();
  if (!Check(checker.iterate(text.data(), text.size(), capacity).get(whole))) return std::nullopt;
  if (!Check(whole.get_value().get(root))) return std::nullopt;
  return DigestOf(root);
}

// An object or array. false: malformed.
bool JsonReader::Impl::TakeTree(std::string_view text, Form form, std::string& out) {
  if (digest) {
    digest = DigestTree(text);
    if (!digest) return false;
  }
  AppendText(text, form == Form::kOneLine, out);
  last_type = text.front() == '{' ? JsonType::kObject : JsonType::kArray;
  return true;
}

void JsonReader::Impl::AppendLiteral(std::string_view text, std::string& out, bool& null) {
  text = Trimmed(text);
  null = text == "null";
  if (digest) digest = DigestLiteral(text);
  if (null) return;
  last_type = text == "true" || text == "false" ? JsonType::kBoolean : JsonType::kNumber;
  out.append(text);
}

// false: malformed.
bool JsonReader::Impl::AppendValue(Value value, Form form, std::string& out, bool& null) {
  json_type kind{};
  if (!Check(value.type().get(kind))) return false;
  std::string_view text;
  if (kind == json_type::string) {
    const std::string_view token = Trimmed(value.raw_json_token());
    if (!Check(value.get_string().get(text))) return false;
    if (digest) digest = DigestText(JsonKind::kString, text);
    out.append(form == Form::kText ? text : token);
    last_type = JsonType::kString;
    return true;
  }
  if (kind != json_type::object && kind != json_type::array) {
    AppendLiteral(value.raw_json_token(), out, null);
    return true;
  }
  return Check(simdjson::to_json_string(value).get(text)) && TakeTree(text, form, out);
}

// The empty pointer. false: malformed.
bool JsonReader::Impl::AppendWhole(Form form, std::string& out, bool& null) {
  const std::string_view text = Trimmed(std::string_view(buffer.data(), length));
  if (text.front() == '{' || text.front() == '[') return TakeTree(text, form, out);
  if (text.front() != '"') {
    AppendLiteral(text, out, null);
    return true;
  }
  document.rewind();
  std::string_view unescaped;
  if (!Check(document.get_string().get(unescaped))) return false;
  if (digest) digest = DigestText(JsonKind::kString, unescaped);
  out.append(form == Form::kText ? unescaped : text);
  last_type = JsonType::kString;
  return true;
}

JsonReader::JsonReader() : impl_(std::make_unique<Impl>()) {}
JsonReader::~JsonReader() = default;

void JsonReader::Begin(std::string_view text) { impl_->Parse(text); }

JsonFound JsonReader::Digest(std::string_view pointer, std::uint64_t& out) {
  impl_->ignored.clear();
  impl_->digest = 0;
  const JsonFound found = Take(pointer, Form::kText, impl_->ignored);
  out = std::exchange(impl_->digest, std::nullopt).value_or(0);
  return found;
}

const std::string& JsonReader::problem() const { return impl_->problem; }
JsonType JsonReader::type() const { return impl_->last_type; }

JsonFound JsonReader::Append(std::string_view pointer, std::string& out) {
  return Take(pointer, Form::kText, out);
}

JsonFound JsonReader::AppendRaw(std::string_view pointer, std::string& out) {
  return Take(pointer, Form::kOneLine, out);
}

JsonFound JsonReader::AppendBytes(std::string_view pointer, std::string& out) {
  return Take(pointer, Form::kBytes, out);
}

JsonFound JsonReader::Take(std::string_view pointer, Form form, std::string& out) {
  if (impl_->malformed) return JsonFound::kMalformed;
  const std::size_t before = out.size();
  bool null = false;
  bool good = false;
  if (pointer.empty()) {
    good = impl_->AppendWhole(form, out, null);
  } else {
    Impl::Value at;
    const JsonFound found = impl_->AtPointer(pointer, at);
    if (found != JsonFound::kValue) return found;
    good = impl_->AppendValue(at, form, out, null);
  }
  if (!good) {
    out.resize(before);
    return JsonFound::kMalformed;
  }
  return null ? JsonFound::kNull : JsonFound::kValue;
}

}  // namespace fencepost::consumer
