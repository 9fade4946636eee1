// The client of a connection: supplies the operations and receives the replies. The engine
// implements it over LockCore; tests script it. All on the thread of the io_context; a
// method must not call back into the connection.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "locking/core/observer.h"
#include "locking/core/ops.h"
#include "locking/core/store/store.h"

namespace fencepost::locking {

class NodeClient {
 public:
  virtual ~NodeClient() = default;

  // --- what to send ----------------------------------------------------------------------------
  virtual bool Open() = 0;  // may lock operations be sent
  virtual std::size_t TakeBatch(std::vector<Op>& out) = 0;
  virtual std::optional<StoreCommand> TakeCommand() = 0;

  // --- results ---------------------------------------------------------------------------------
  virtual void OnConnected(const NodeInfo& info,
                           Now now) = 0;     // also: probed, scripts loaded again
  virtual void OnReconnect() = 0;            // just before OnConnected
  virtual void OnDisconnected(Now now) = 0;  // ends a stall too
  virtual void OnStalled(bool stalled, Now now) = 0;
  virtual void OnSentinel(std::optional<std::string> current, const CallInfo& call, Now now) = 0;
  virtual void OnNoSentinel(Now now) = 0;
  // An answered script call; comes before the OnReplies that holds its replies.
  virtual void OnCall(OpKind kind, std::size_t keys, const CallInfo& call, Now now) = 0;
  // Exactly one reply for every op taken, over all calls.
  virtual void OnReplies(const std::vector<Reply>& replies, Now now) = 0;
  virtual void OnCommandError(CommandError error) = 0;
  virtual void OnNote(Severity severity, std::string_view event, std::string_view text) = 0;
  virtual void OnIdle() = 0;  // Pump would find the connection ready for the next thing
};

}  // namespace fencepost::locking
