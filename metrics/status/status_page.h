// The status page at `/`: one HTML page that needs nothing from elsewhere, and no JavaScript for
// what matters. With JavaScript it is live: /events sends the changed middle of the page (the
// fragment) about once a second as a server-sent event (WHATWG HTML, 9.2). Pure; any thread.
#pragma once

#include <string>

#include "metrics/status/shown_pipeline.h"

namespace fencepost::metrics {

std::string StatusPage(const ShownProcess& process);
// The content of <main>: rendered in one place, for the page and for the events.
std::string StatusFragment(const ShownProcess& process);
// One server-sent event of it.
std::string StatusEvent(const ShownProcess& process);

// Value of Content-Security-Policy: nothing from elsewhere, only this page's own style and script.
const std::string& StatusPagePolicy();

}  // namespace fencepost::metrics
