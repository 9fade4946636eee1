// About how large a Protobuf message is as JSON, before any of it is made: each message in it
// writes all its fields without presence with their defaults, so that two bytes can become
// kilobytes in memory and more as text. Reads the encoded bytes alone. One thread; descriptors
// outlive it.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include <google/protobuf/descriptor.h>

namespace google::protobuf::io {
class CodedInputStream;
}

namespace fencepost::consumer {

class ProtobufSizes {
 public:
  // In bytes. More than `most`: at least so much, the rest was not looked at. Bytes that are no
  // message count up to where that shows.
  std::size_t Estimate(const google::protobuf::Descriptor& type, std::string_view bytes,
                       std::size_t most);

 private:
  using Stream = google::protobuf::io::CodedInputStream;
  void Message(const google::protobuf::Descriptor& type, Stream& in, int depth);
  bool Field(const google::protobuf::FieldDescriptor& field, unsigned wire_type, Stream& in,
             int depth);
  std::size_t OfDefaults(const google::protobuf::Descriptor& type);

  std::size_t size_ = 0;
  std::size_t most_ = 0;
  std::unordered_map<const google::protobuf::Descriptor*, std::size_t> defaults_;
};

}  // namespace fencepost::consumer
