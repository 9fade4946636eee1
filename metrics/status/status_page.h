// The status page at `/`: one HTML page that needs nothing from elsewhere, and no JavaScript for
// what matters. With JavaScript it is live: while it is visible, it asks /fragment for its middle
// once a second. Pure; any thread.
#pragma once

#include <string>

#include "metrics/status/shown_pipeline.h"

namespace fencepost::metrics {

std::string StatusPage(const ShownProcess& process);
// The content of <main>: what changes.
std::string StatusFragment(const ShownProcess& process);

// Value of Content-Security-Policy: nothing from elsewhere, only this page's own style and script.
const std::string& StatusPagePolicy();

}  // namespace fencepost::metrics
