// The status page at `/`, whose middle is at /fragment. Pure; any thread.
#pragma once

#include <string>

#include "consumer/pipeline/options.h"
#include "metrics/status/shown_pipeline.h"

namespace fencepost::metrics {

// Buttons that POST what metrics/http/http_server.h says of Control.
struct PageControl {
  consumer::ControlAccess access = consumer::ControlAccess::kOff;  // kOff: there are none
  std::string page_token;
};
std::string StatusPage(const ShownProcess& process, const PageControl& control = {});
// The content of <main>: what changes.
std::string StatusFragment(const ShownProcess& process);

}  // namespace fencepost::metrics
