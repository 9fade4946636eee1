// A Protobuf schema as descriptors: its text is parsed, imports resolved among its references and
// what every schema may import. Made once; then any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/type_resolver.h>

#include "consumer/decode/decoder.h"

namespace fencepost::consumer {

class ProtobufSchema {
 public:
  ProtobufSchema() = default;
  ProtobufSchema(const ProtobufSchema&) = delete;
  ProtobufSchema& operator=(const ProtobufSchema&) = delete;
  // Once. Empty, or why it is no schema: one line.
  std::string Load(const SchemaText& schema);

  // The schema's own file, with one message at least.
  [[nodiscard]] const google::protobuf::FileDescriptor& file() const { return *file_; }
  // For the JSON mapping of messages of this schema.
  [[nodiscard]] google::protobuf::util::TypeResolver* resolver() const { return resolver_.get(); }
  [[nodiscard]] static std::string UrlOf(const google::protobuf::Descriptor& type);
  std::unique_ptr<google::protobuf::Message> New(const google::protobuf::Descriptor& type);

  // A message's path in its file: which of the messages, then which of those nested in it.
  // nullptr: there is none.
  [[nodiscard]] const google::protobuf::Descriptor* At(const std::vector<int>& path) const;
  [[nodiscard]] static std::vector<int> PathOf(const google::protobuf::Descriptor& type);

 private:
  class FirstError;
  bool Add(const std::string& name, const std::string& text, FirstError& error);

  // In the order that they lean on each other.
  google::protobuf::SimpleDescriptorDatabase files_;
  google::protobuf::DescriptorPoolDatabase known_{
      *google::protobuf::DescriptorPool::generated_pool()};
  std::unique_ptr<google::protobuf::MergedDescriptorDatabase> databases_;
  std::unique_ptr<google::protobuf::DescriptorPool> pool_;
  const google::protobuf::FileDescriptor* file_ = nullptr;
  std::unique_ptr<google::protobuf::util::TypeResolver> resolver_;
  std::unique_ptr<google::protobuf::DynamicMessageFactory> factory_;
};

}  // namespace fencepost::consumer
