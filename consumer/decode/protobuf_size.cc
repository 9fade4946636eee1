#include "consumer/decode/protobuf_size.h"

#include <algorithm>
#include <cstdint>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "consumer/decode/decoder.h"

namespace fencepost::consumer {
namespace {

namespace pb = google::protobuf;
using Wire = pb::internal::WireFormatLite;

constexpr std::size_t kAround = 4;   // quotes, colon, comma
constexpr std::size_t kNumber = 12;  // digits of a number, on the whole

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

}  // namespace

std::size_t ProtobufSizes::OfDefaults(const pb::Descriptor& type) {
  const auto [entry, is_new] = defaults_.emplace(&type, kAround);
  if (!is_new) return entry->second;
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    if (!field.has_presence()) entry->second += field.name().size() + kAround + 2;
  }
  return entry->second;
}

std::size_t ProtobufSizes::Estimate(const pb::Descriptor& type, std::string_view bytes,
                                    std::size_t most) {
  size_ = 0;
  most_ = most;
  Stream in(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  Message(type, in, 0);
  return size_;
}

void ProtobufSizes::Message(const pb::Descriptor& type, Stream& in, int depth) {
  size_ += OfDefaults(type);
  while (size_ <= most_ && depth <= kMaxDepth) {
    const std::uint32_t tag = in.ReadTag();
    if (tag == 0 || Wire::GetTagWireType(tag) == Wire::WIRETYPE_END_GROUP) return;
    const pb::FieldDescriptor* field = type.FindFieldByNumber(Wire::GetTagFieldNumber(tag));
    const bool good = field == nullptr ? Wire::SkipField(&in, tag)
                                       : Field(*field, Wire::GetTagWireType(tag), in, depth);
    if (!good) return;
  }
}

// False: these are no bytes of a message.
bool ProtobufSizes::Field(const pb::FieldDescriptor& field, unsigned wire_type, Stream& in,
                          int depth) {
  if (!field.is_repeated()) size_ += field.name().size() + kAround;
  std::uint64_t number = 0;
  std::uint32_t half = 0;
  std::uint32_t length = 0;
  switch (wire_type) {
    case Wire::WIRETYPE_VARINT:
      size_ += OfScalar(field);
      return in.ReadVarint64(&number);
    case Wire::WIRETYPE_FIXED64:
      size_ += kNumber;
      return in.ReadLittleEndian64(&number);
    case Wire::WIRETYPE_FIXED32:
      size_ += kNumber;
      return in.ReadLittleEndian32(&half);
    case Wire::WIRETYPE_START_GROUP:
      if (field.message_type() == nullptr) return false;
      Message(*field.message_type(), in, depth + 1);
      return true;
    case Wire::WIRETYPE_LENGTH_DELIMITED:
      break;
    default:
      return false;
  }
  if (!in.ReadVarint32(&length) ||
      length > static_cast<std::uint32_t>(in.BytesUntilLimit() < 0 ? in.BytesUntilTotalBytesLimit()
                                                                   : in.BytesUntilLimit())) {
    return false;
  }
  if (field.message_type() != nullptr) {
    const auto limit = in.PushLimit(static_cast<int>(length));
    Message(*field.message_type(), in, depth + 1);
    const int left = in.BytesUntilLimit();
    in.PopLimit(limit);
    return left == 0;
  }
  const bool text = field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING;
  size_ += text ? kAround + length + length / 2 : length * OfScalar(field) / 2;  // packed numbers
  return in.Skip(static_cast<int>(length));
}

}  // namespace fencepost::consumer
