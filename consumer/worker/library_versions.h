// The libraries that a worker runs on, as they are at run time: for `version`, /status and reports
// of defects. Any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fencepost::consumer {

// (name, version), e.g. ("librdkafka", "2.0.2").
std::vector<std::pair<std::string, std::string>> LibraryVersions();

}  // namespace fencepost::consumer
