// What a request is answered, and whether it may ask. cpp-httplib reads the request line and writes
// the answer; of the headers it is given none, as it would act upon some by itself (Range,
// Accept-Encoding, Expect) and decodes others.
#pragma once

#include <string>
#include <string_view>

#include "metrics/http/certificates.h"
#include "metrics/http/http_server.h"
#include "metrics/http/incoming_request.h"

namespace fencepost::metrics {

// Who asks.
struct Asker {
  std::string address;       // IPv4 as such, also where it came over IPv6
  bool certificate = false;  // one of tls.client_ca
};

// Thread-safe.
class Answers {
 public:
  // `loopback`: the port is reached from this machine alone, of which `host` is then a name, too.
  Answers(Endpoints endpoints, bool loopback, std::string host);

  // To one that is whole or refused; all bytes of the answer, after which the connection ends.
  // Calls the endpoints.
  [[nodiscard]] std::string To(const IncomingRequest& request, const Asker& asker) const;

 private:
  friend class Exchange;
  const Endpoints endpoints_;
  const bool loopback_;
  const std::string host_;
};

}  // namespace fencepost::metrics
