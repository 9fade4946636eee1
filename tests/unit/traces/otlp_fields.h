// Reads protobuf without a schema: fields by their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

namespace fencepost::metrics {

class Fields {
 public:
  explicit Fields(const std::string& bytes) { EXPECT_TRUE(fields_.ParseFromString(bytes)); }

  // Texts, bytes and messages of one number, in their order.
  [[nodiscard]] std::vector<std::string> All(int number) const {
    std::vector<std::string> all;
    for (int i = 0; i < fields_.field_count(); ++i) {
      const auto& field = fields_.field(i);
      if (field.number() == number) all.push_back(field.length_delimited());
    }
    return all;
  }
  [[nodiscard]] std::string Text(int number) const {
    const auto all = All(number);
    EXPECT_EQ(all.size(), 1U) << number;
    return all.empty() ? "" : all.front();
  }
  [[nodiscard]] Fields Sub(int number) const { return Fields(Text(number)); }
  // -1: it is not there.
  [[nodiscard]] std::int64_t Number(int number) const {
    for (int i = 0; i < fields_.field_count(); ++i) {
      using google::protobuf::UnknownField;
      const UnknownField& field = fields_.field(i);
      if (field.number() != number) continue;
      if (field.type() == UnknownField::TYPE_VARINT)
        return static_cast<std::int64_t>(field.varint());
      if (field.type() == UnknownField::TYPE_FIXED32) return field.fixed32();
      return static_cast<std::int64_t>(field.fixed64());
    }
    return -1;
  }
  // "name=text|name=7" of attributes.
  [[nodiscard]] std::string Attributes(int number) const {
    std::string text;
    for (const std::string& bytes : All(number)) {
      const Fields pair(bytes);
      const Fields value = pair.Sub(2);
      text += (text.empty() ? "" : "|") + pair.Text(1) + "=";
      const auto texts = value.All(1);
      text += texts.empty() ? std::to_string(value.Number(3)) : texts.front();
    }
    return text;
  }

 private:
  google::protobuf::UnknownFieldSet fields_;
};

}  // namespace fencepost::metrics
