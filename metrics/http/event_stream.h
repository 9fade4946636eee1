// How an answer goes out to a client that may be slow, silent or gone.
//
// The HTTP library (civetweb 1.15) tells a handler nothing of its peer: a listener that closed is
// noticed by the second write after that, one that does not read any more when all buffers are
// full, and the timeout of mg_write begins again with every byte that goes. So the socket beneath
// is watched here: poll(2) says at once that the peer has closed or was reset, and whether there is
// room for more; ioctl_list(2), SIOCOUTQ, how much of what was sent has not reached it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "locking/base/stop_switch.h"

struct mg_connection;

namespace fencepost::metrics {

// Writes all of it, at the client's pace, but for no longer than `limit`. False: the client has
// gone or was too slow, or it is to stop.
bool WriteWithin(mg_connection* connection, std::string_view text, std::chrono::milliseconds limit,
                 const StopSwitch& stop);

struct StreamOptions {
  std::chrono::milliseconds between{1000};  // events
  std::chrono::milliseconds retry{2000};    // after which a browser asks again
  std::chrono::milliseconds io_timeout{0};  // with a listener that takes nothing
  std::chrono::milliseconds life{0};        // 0: one event, and the end
};

// Server-sent events (WHATWG HTML, 9.2) to one listener, until it leaves, is stalled for
// `patience`, has been served for `life`, or `stop`. While a listener has not taken an event yet,
// none is made. Exceptions of `event` go on to the caller.
void SendEvents(mg_connection* connection, const std::function<std::string()>& event,
                const StreamOptions& options, const StopSwitch& stop);
// The answer to HEAD: as if a stream followed.
void SendEventsHead(mg_connection* connection, std::chrono::milliseconds io_timeout,
                    const StopSwitch& stop);

}  // namespace fencepost::metrics
