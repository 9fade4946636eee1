// The TLS of the HTTP port (TLS 1.2 or later), by files that somebody may replace: for each new
// connection they are looked at, and read again when one has changed. New files that cannot be used
// change nothing: the old certificate serves on, a note says so once, and they are tried again
// every 10 s, as what kept them from being read need not show at the files. Not thread-safe.
#pragma once

#include <sys/stat.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <asio/ssl/context.hpp>
#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"
#include "locking/base/error.h"
#include "locking/core/observer.h"

namespace fencepost::metrics {

using Note = std::function<void(locking::Severity, std::string_view event, std::string_view text)>;

class Certificates {
 public:
  using Context = std::shared_ptr<asio::ssl::context>;
  using Clock = std::chrono::steady_clock;

  // `required`: with client_ca, a handshake without a client's certificate fails; else it goes on
  // without one. Error: code http_certificate; a file cannot be used.
  static tl::expected<std::unique_ptr<Certificates>, Error> Read(const consumer::PortTls& files,
                                                                 bool required, Note note);
  // For a new connection, which keeps it.
  Context Current(Clock::time_point now = Clock::now());

 private:
  // What changes with a file, or with the link that leads to it.
  using State = std::array<struct stat, 3>;

  Certificates(consumer::PortTls files, bool required, Note note);
  [[nodiscard]] State Look() const;
  [[nodiscard]] tl::expected<Context, Error> Load() const;

  const consumer::PortTls files_;
  const bool required_;
  const Note note_;
  State seen_{};
  Context context_;
  std::optional<Clock::time_point> refused_;  // when the files as seen were last tried in vain
};

}  // namespace fencepost::metrics
