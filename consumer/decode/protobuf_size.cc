#include "consumer/decode/protobuf_size.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "consumer/decode/decoder.h"

namespace fencepost::consumer {
namespace {

namespace pb = google::protobuf;
using Wire = pb::internal::WireFormatLite;

constexpr std::size_t kAround = 4;   // quotes, colon, comma
constexpr std::size_t kNumber = 12;  // digits of a number, on the whole
constexpr std::size_t kTime = 32;  // a Timestamp, a Duration or another type with a text of its own

// Measured with libprotobuf 3.21 on 64 bits.
constexpr std::size_t kObject = 80;        // a message without fields
constexpr std::size_t kPlace = 8;          // for a field in it
constexpr std::size_t kList = 24;          // for a repeated one
constexpr std::size_t kMap = 192;          // for a map
constexpr std::size_t kEntry = 256;        // an entry of a map
constexpr std::size_t kString = 64;        // a text without its bytes
constexpr std::size_t kUnknown = 96;       // a field that the type does not have
constexpr std::size_t kNode = 288;         // of the tree, with a short name
constexpr std::size_t kStep = 32;          // of the path that each node keeps
constexpr std::size_t kShortestLong = 16;  // a name that has bytes of its own

std::size_t BytesOf(std::string_view name) {
  return name.size() < kShortestLong ? 0 : name.size() + kShortestLong;
}

// A value of an enum takes one byte, and becomes a name.
std::size_t LongestName(const pb::EnumDescriptor& type) {
  std::size_t longest = 0;
  for (int i = 0; i < type.value_count(); ++i) {
    longest = std::max(longest, type.value(i)->name().size());
  }
  return longest + kAround;
}

std::size_t OfScalar(const pb::FieldDescriptor& field) {
  return field.enum_type() == nullptr ? kNumber : LongestName(*field.enum_type());
}

std::size_t OfDefault(const pb::FieldDescriptor& field) {
  if (field.is_repeated() || field.message_type() != nullptr) return kAround;
  const bool text = field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING;
  return text ? kAround + 2 * field.default_value_string().size() : OfScalar(field);
}

// Without fields of its own in JSON: a map's entry, a Timestamp, a Value.
bool IsOneNode(const pb::Descriptor& type) {
  return type.options().map_entry() ||
         type.well_known_type() != pb::Descriptor::WELLKNOWNTYPE_UNSPECIFIED;
}

Wire::FieldType WireType(const pb::FieldDescriptor& field) {
  return static_cast<Wire::FieldType>(field.type());
}

std::size_t CountPacked(const pb::FieldDescriptor& field, std::string_view bytes) {
  switch (Wire::WireTypeForFieldType(WireType(field))) {
    case Wire::WIRETYPE_FIXED64:
      return bytes.size() / 8;
    case Wire::WIRETYPE_FIXED32:
      return bytes.size() / 4;
    default:
      return static_cast<std::size_t>(
          std::ranges::count_if(bytes, [](char c) { return (c & 0x80) == 0; }));
  }
}

// What is behind its length.
std::optional<std::string_view> TakeBytes(pb::io::CodedInputStream& in) {
  std::uint32_t length = 0;
  if (!in.ReadVarint32(&length)) return std::nullopt;
  const void* data = nullptr;
  int there = 0;
  if (length > 0 && !in.GetDirectBufferPointer(&data, &there)) return std::nullopt;
  if (length > static_cast<std::uint32_t>(there)) return std::nullopt;
  in.Skip(static_cast<int>(length));
  return std::string_view(static_cast<const char*>(data), length);
}

pb::io::CodedInputStream StreamOf(std::string_view bytes) {
  return pb::io::CodedInputStream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                  static_cast<int>(bytes.size()));
}

const pb::FieldDescriptor* FieldOf(const pb::Descriptor& type, int number) {
  const pb::FieldDescriptor* field = type.FindFieldByNumber(number);
  if (field != nullptr || !type.IsExtensionNumber(number)) return field;
  return type.file()->pool()->FindExtensionByNumber(&type, number);
}

}  // namespace

ProtobufSize ProtobufSizes::Measure(const pb::Descriptor& type, std::string_view bytes) {
  size_ = {};
  Stream in = StreamOf(bytes);
  Message(type, in, {});
  return size_;
}

const ProtobufSizes::Empty& ProtobufSizes::Of(const pb::Descriptor& type) {
  const auto [entry, is_new] = empty_.emplace(&type, Empty{});
  Empty& empty = entry->second;
  if (!is_new) return empty;
  empty.size = {.message = kObject, .json = kAround + (IsOneNode(type) ? kTime : 0)};
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    empty.size.message += field.is_map() ? kMap : field.is_repeated() ? kList : kPlace;
    // Of a oneof, and so of what is `optional` in proto3, there are nodes for what is set alone.
    if (IsOneNode(type) || field.containing_oneof() != nullptr) continue;
    ++empty.nodes;
    empty.size.tree += kNode + 2 * BytesOf(field.name());
    if (field.is_repeated() || field.message_type() == nullptr) {
      empty.size.json += field.name().size() + kAround + OfDefault(field);
    }
  }
  return empty;
}

void ProtobufSizes::Message(const pb::Descriptor& type, Stream& in, Place place) {
  const Empty& empty = Of(type);
  size_.message += empty.size.message;
  size_.tree += empty.size.tree + empty.nodes * place.path;
  size_.json += empty.size.json;
  if (place.depth > kMaxDepth) return;  // it is refused
  if (type.well_known_type() == pb::Descriptor::WELLKNOWNTYPE_ANY) return Any(type, in, place);
  for (std::uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    if (Wire::GetTagWireType(tag) == Wire::WIRETYPE_END_GROUP) return;
    const pb::FieldDescriptor* field = FieldOf(type, Wire::GetTagFieldNumber(tag));
    const bool good = field == nullptr ? Unknown(tag, in) : Field(*field, tag, in, place);
    if (!good) return;
  }
}

// It is kept as it is, a group as its fields, each of which has two bytes at least.
bool ProtobufSizes::Unknown(std::uint32_t tag, Stream& in) {
  const int before = in.CurrentPosition();
  const bool good = Wire::SkipField(&in, tag);
  const auto bytes = static_cast<std::size_t>(in.CurrentPosition() - before);
  const bool group = Wire::GetTagWireType(tag) == Wire::WIRETYPE_START_GROUP;
  size_.message += kUnknown + (group ? bytes / 2 * kUnknown : bytes);
  return good;
}

// What is in it is copied at each level before it is written as the message that it says it is.
void ProtobufSizes::Any(const pb::Descriptor& type, Stream& in, Place place) {
  std::string_view url;
  std::string_view value;
  for (std::uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    const int number = Wire::GetTagFieldNumber(tag);
    if (Wire::GetTagWireType(tag) != Wire::WIRETYPE_LENGTH_DELIMITED || number > 2) {
      if (!Unknown(tag, in)) return;
      continue;
    }
    const auto bytes = TakeBytes(in);
    if (!bytes) return;
    size_.message += kString + bytes->size();
    (number == 1 ? url : value) = *bytes;
  }
  size_.tree += 2 * (kNode + place.path + kString + url.size() + value.size());
  size_.json += kNumber + url.size();
  const std::string name(url.substr(url.rfind('/') + 1));
  const pb::Descriptor* inner = type.file()->pool()->FindMessageTypeByName(name);
  if (inner == nullptr) return;
  Stream of_value = StreamOf(value);
  Message(*inner, of_value, {.depth = place.depth + 1, .path = place.path});
}

// False: these are no bytes of a message.
bool ProtobufSizes::Field(const pb::FieldDescriptor& field, std::uint32_t tag, Stream& in,
                          Place place) {
  const auto wire_type = Wire::GetTagWireType(tag);
  const bool packed = field.is_packable() && wire_type == Wire::WIRETYPE_LENGTH_DELIMITED;
  if (!packed && wire_type != Wire::WireTypeForFieldType(WireType(field))) return Unknown(tag, in);
  if (!field.is_repeated()) size_.json += field.name().size() + kAround;
  std::uint64_t number = 0;
  std::uint32_t half = 0;
  switch (wire_type) {
    case Wire::WIRETYPE_VARINT:
      Values(field, 1, place);
      return in.ReadVarint64(&number);
    case Wire::WIRETYPE_FIXED64:
      Values(field, 1, place);
      return in.ReadLittleEndian64(&number);
    case Wire::WIRETYPE_FIXED32:
      Values(field, 1, place);
      return in.ReadLittleEndian32(&half);
    case Wire::WIRETYPE_START_GROUP:
      Within(field, in, place);
      return true;
    default:
      break;
  }
  const auto bytes = TakeBytes(in);
  if (!bytes) return false;
  if (packed) {
    Values(field, CountPacked(field, *bytes), place);
  } else if (field.message_type() != nullptr) {
    Stream of_message = StreamOf(*bytes);
    Within(field, of_message, place);
  } else {
    Values(field, 1, place);
    size_.message += kString + bytes->size();
    size_.tree += kString + bytes->size();
    size_.json += bytes->size() + bytes->size() / 2;
  }
  return true;
}

// Beside what an empty message has: elements, and what is set of a oneof.
void ProtobufSizes::Values(const pb::FieldDescriptor& field, std::size_t count, Place place) {
  if (field.is_repeated() || field.containing_oneof() != nullptr) {
    size_.tree += count * (kNode + place.path);
  }
  if (field.is_repeated()) size_.message += count * (field.is_map() ? kEntry : kPlace);
  if (field.message_type() == nullptr) size_.json += count * OfScalar(field);
}

void ProtobufSizes::Within(const pb::FieldDescriptor& field, Stream& in, Place place) {
  Values(field, 1, place);
  ++place.depth;
  if (!IsOneNode(*field.containing_type())) place.path += kStep + BytesOf(field.name());
  Message(*field.message_type(), in, place);
}

}  // namespace fencepost::consumer
