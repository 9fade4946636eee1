// What the worker's pages have in common: head, style, script, policy. Such a page needs nothing
// from elsewhere, and no JavaScript for what matters. With JavaScript it is live: while it is
// visible, it asks for its middle again and again. Pure; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace fencepost::metrics {

struct PageFrame {
  std::string worker, version;
  std::chrono::milliseconds now{0};  // unix time of what is shown
  std::string_view title;            // behind the worker's name
  std::string_view fragment;         // the path of what is in <main>
  int every = 1;                     // seconds until it is asked for again
  std::string_view links;            // HTML of the footer
  std::string control{};             // HTML of a region before <main>
};
// `main`: HTML, with an element `summary` whose data-title goes before the title.
std::string PageOf(const PageFrame& frame, const std::string& main);

// Value of Content-Security-Policy: nothing from elsewhere, only the pages' own style and script.
const std::string& PagePolicy();

}  // namespace fencepost::metrics
