// What a Protobuf message takes, before any of it is made. A message of two bytes has all the
// fields of its type: libprotobuf makes an object with room for each of them, then a node for each
// on the way to JSON, whether or not it is written, so that a small record can take gigabytes.
// Reads the encoded bytes alone, once. One thread; descriptors outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include <google/protobuf/descriptor.h>

namespace google::protobuf::io {
class CodedInputStream;
}

namespace fencepost::consumer {

// In bytes, about, and rather more than less. Bytes that are no message count up to where that
// shows.
struct ProtobufSize {
  std::size_t message = 0;  // as an object of libprotobuf
  std::size_t tree = 0;     // as libprotobuf's nodes on the way to JSON
  std::size_t json = 0;     // as JSON text
};

class ProtobufSizes {
 public:
  // `tree` and `json` are of a message in which no field that is not repeated comes twice, as
  // libprotobuf writes it: of an Any in two pieces neither shows what is in it.
  ProtobufSize Measure(const google::protobuf::Descriptor& type, std::string_view bytes);

 private:
  using Stream = google::protobuf::io::CodedInputStream;
  // What every message of a type takes, whatever is in it.
  struct Empty {
    ProtobufSize size;
    std::size_t nodes = 0;
  };
  // Where a message is: how deep, and what each node there takes for the names above it.
  struct Place {
    int depth = 0;
    std::size_t path = 0;
  };
  const Empty& Of(const google::protobuf::Descriptor& type);
  void Message(const google::protobuf::Descriptor& type, Stream& in, Place place);
  void Any(const google::protobuf::Descriptor& type, Stream& in, Place place);
  void Within(const google::protobuf::FieldDescriptor& field, Stream& in, Place place);
  bool Field(const google::protobuf::FieldDescriptor& field, std::uint32_t tag, Stream& in,
             Place place);
  bool Unknown(std::uint32_t tag, Stream& in);
  void Values(const google::protobuf::FieldDescriptor& field, std::size_t count, Place place);

  ProtobufSize size_;
  std::unordered_map<const google::protobuf::Descriptor*, Empty> empty_;
};

}  // namespace fencepost::consumer
