// An array parameter in PostgreSQL's binary format. A value; keeps its memory from use to use.
#pragma once

#include <arpa/inet.h>
#include <endian.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "consumer/outputs/postgres/postgres_connection.h"

namespace fencepost::consumer {

// One-dimensional: dimensions, has-null flag, element type, length, lower bound; then each element
// as length (-1: NULL) and bytes; all big-endian.
class BinaryArray {
 public:
  void Begin(Oid element, std::size_t length) {
    bytes_.clear();
    PutInt32(1);
    PutInt32(1);  // there may be NULLs
    PutInt32(static_cast<std::uint32_t>(element));
    PutInt32(static_cast<std::uint32_t>(length));
    PutInt32(1);
  }
  void Add(std::optional<std::string_view> element) {
    if (!element) return PutInt32(0xffffffffu);
    PutInt32(static_cast<std::uint32_t>(element->size()));
    bytes_.append(*element);
  }
  void Add(std::uint64_t element) {
    PutInt32(8);
    const std::uint64_t big = htobe64(element);
    char raw[sizeof big];
    std::memcpy(raw, &big, sizeof big);
    bytes_.append(raw, sizeof raw);
  }
  void Add(bool element) {
    PutInt32(1);
    bytes_.push_back(element ? '\1' : '\0');
  }
  [[nodiscard]] PgParam Param() const {
    return {.data = bytes_.data(), .size = static_cast<int>(bytes_.size()), .binary = true};
  }

 private:
  void PutInt32(std::uint32_t value) {
    const std::uint32_t big = htonl(value);
    char raw[sizeof big];
    std::memcpy(raw, &big, sizeof big);
    bytes_.append(raw, sizeof raw);
  }
  std::string bytes_;
};

}  // namespace fencepost::consumer
