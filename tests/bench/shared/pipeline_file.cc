#include "tests/bench/shared/pipeline_file.h"

#include <sstream>
#include <stdexcept>

#include "tests/bench/shared/turns.h"

namespace fencepost::bench {
namespace {

void Set(Json& file, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw std::invalid_argument("--set " + assignment + ": write PATH=VALUE, lock.block=64");
  }
  const std::string path = assignment.substr(0, equals);
  const std::string text = assignment.substr(equals + 1);
  std::istringstream parts(path);
  Json* at = &file;
  const char separator = path.find('/') != std::string::npos ? '/' : '.';
  for (std::string part; std::getline(parts, part, separator);) {
    if (!at->is_object() && !at->is_null()) {
      throw std::invalid_argument("--set " + assignment + ": there is no section above " + part);
    }
    at = &(*at)[part];
  }
  const Json value = Json::parse(text, nullptr, false);
  *at = value.is_discarded() ? Json(text) : value;
}

}  // namespace

std::string PipelineFile::Text() const {
  Json file = {
      {"version", 1},
      {"name", "bench"},
      {"guarantee", "exactly-once"},
      {"kafka",
       {{"brokers", {bootstrap}},
        {"topics", {topic}},
        {"group", topic},
        {"start_from", "earliest"}}},
      {"record_id", by == "id" ? "json:/order_id" : "position"},
      {"lock", {{"redis", {{"nodes", nodes}}}}},
  };
  if (by == "block") file["lock"]["block"] = 1024;
  if (!handler_url.empty()) {
    file["handler"] = {{"http", {{"url", handler_url}, {"idempotent", true}}}};
  }
  if (output_topic.empty()) {
    const auto effect = [](const char* table) {
      return Json{{"table", table},
                  {"columns", {{"order_id", "json:/order_id"}, {"amount", "json:/amount"}}}};
    };
    Json postgres = effect("effects");
    if (tables > 1) postgres = {{"effects", Json::array({postgres, effect("more_effects")})}};
    postgres["dsn"] = dsn;
    file["output"] = {{"postgres", postgres}};
  } else {
    file["output"] = {{"kafka", {{"topic", output_topic}}}};
  }
  for (const std::string& assignment : set) Set(file, assignment);
  return file.dump(1) + "\n";
}

}  // namespace fencepost::bench
