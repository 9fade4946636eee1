// A spoiled pipeline file, with all that is said about it, to the letter.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/config/pipeline_text.h"

namespace fencepost::config {

// The pipeline with `from` replaced once by `to`; what is said of it, without the file's name.
struct Case {
  const char* name;
  const char* from;
  const char* to;
  std::vector<std::string> findings;
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class BadFile : public testing::TestWithParam<Case> {};

inline std::string NameOfCase(const testing::TestParamInfo<Case>& info) { return info.param.name; }

}  // namespace fencepost::config
