#include "metrics/status/page_frame.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "locking/base/digest.h"
#include "metrics/status/html.h"

namespace fencepost::metrics {

// (name, text) of status_page.css and status_page.js.
std::span<const std::pair<std::string_view, std::string_view>> PageFiles();

namespace {

const std::string_view kStyle = PageFiles()[0].second;
const std::string_view kScript = PageFiles()[1].second;

}  // namespace

std::string PageOf(const PageFrame& frame, const std::string& main) {
  return fmt::format(
      R"(<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">)"
      R"(<meta name="viewport" content="width=device-width,initial-scale=1">)"
      R"(<title>{0} - {6}</title><link rel="icon" href="data:,"><style>{1}</style></head>)"
      R"(<body><header><h1>{6}</h1><span>worker <code>{0}</code></span>)"
      R"(<span class="dim">version {2}</span><span class="state">)"
      R"(<span id="live" role="status">as of {3} UTC; reload for newer numbers</span> )"
      R"(<span id="age" aria-hidden="true"></span></span></header>{10})"
      R"(<main data-from="{7}" data-every="{8}">{4}</main>)"
      R"(<footer>{9}</footer><script>{5}</script></body></html>)",
      EscapeHtml(frame.worker), kStyle, EscapeHtml(frame.version), ShowTime(frame.now), main,
      kScript, frame.title, frame.fragment, frame.every, frame.links, frame.control);
}

const std::string& PagePolicy() {
  static const std::string policy = fmt::format(
      "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; "
      "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      Sha256Base64(kStyle), Sha256Base64(kScript));
  return policy;
}

}  // namespace fencepost::metrics
