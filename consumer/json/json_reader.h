// One part of a JSON text by its pointer (RFC 6901), as bytes: numbers keep their digits, strings
// come unescaped, objects and arrays as their text. A text that is not exactly one JSON document
// (json_text.h) has no parts. One thread; keeps its buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fencepost::consumer {

// Empty, or what is wrong with a pointer.
std::string JsonPointerProblem(std::string_view pointer);
// A name as one token of a pointer: ~ and / inside it as ~0 and ~1.
void AppendPointerToken(std::string_view name, std::string& out);
// The name of one token of a pointer that is right: a view of it, or of `scratch`.
std::string_view UnescapeToken(std::string_view token, std::string& scratch);

enum class JsonFound : std::uint8_t { kValue, kNull, kNothing, kMalformed };
// What a value is.
enum class JsonType : std::uint8_t { kString, kNumber, kBoolean, kObject, kArray };

class JsonReader {
 public:
  JsonReader();
  ~JsonReader();
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  void Begin(std::string_view text);  // copies the text
  // Appends to `out` only with kValue. After kMalformed every Append says the same until Begin.
  // `pointer` is one without a problem.
  JsonFound Append(std::string_view pointer, std::string& out);
  // The same, but as JSON without the space between its parts, so on one line: a string keeps its
  // quotes and escapes.
  JsonFound AppendRaw(std::string_view pointer, std::string& out);
  // The same, but as the bytes that the text has there.
  JsonFound AppendBytes(std::string_view pointer, std::string& out);
  // A digest of the part as JSON: two parts have the same one where they are the same JSON (the
  // order of names, white space, escapes and the way a number is written do not count; every digit
  // does). Of null too, which is kNull.
  JsonFound Digest(std::string_view pointer, std::uint64_t& out);
  [[nodiscard]] const std::string& problem() const;  // after kMalformed, one line
  [[nodiscard]] JsonType type() const;               // after kValue: of what was appended

 private:
  struct Impl;
  enum class Form : std::uint8_t { kText, kOneLine, kBytes };
  JsonFound Take(std::string_view pointer, Form form, std::string& out);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::consumer
