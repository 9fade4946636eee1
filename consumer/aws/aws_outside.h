// What the search for credentials asks of the outside, so that tests answer in its place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace fencepost::consumer {

struct AwsRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers{};  // lines
  std::string body{};
  // An address of this machine or pod: it answers at once or not at all, and no proxy leads to it.
  bool near = true;
};

struct AwsAnswer {
  int status = 0;
  std::string body{};
  std::string problem{};  // in one line, without a secret; not empty: there was no answer
};

struct AwsOutside {
  std::function<std::optional<std::string>(const char* name)> variable;
  // The error says why it cannot be read, in a few words.
  std::function<tl::expected<std::string, std::string>(const std::string& path)> read_file;
  std::function<AwsAnswer(const AwsRequest&)> call;

  // For one search: getenv, the file system (64 KiB a file) and libcurl, whose calls end 2.8 s from
  // now, near ones after 1.2 s; others by a proxy where the environment names one. Any thread; a
  // call blocks.
  static AwsOutside Process();
};

}  // namespace fencepost::consumer
