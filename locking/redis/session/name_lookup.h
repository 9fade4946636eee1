// Looks up a node's name, each time it is asked, on a thread of its own: getaddrinfo can take half
// a minute and cannot be cancelled. Neither the caller nor the end of this object waits for it; an
// object runs at most one such thread, which all connections to a node share. Everything else on
// the thread of the io_context.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <tl/expected.hpp>

namespace fencepost::locking {

using TcpEndpoints = std::vector<asio::ip::tcp::endpoint>;
using LookedUp = tl::expected<TcpEndpoints, std::string>;  // at least one, or why there is none
// Blocks; called on the thread of the lookup.
using LookUp = std::function<LookedUp(const std::string& host, const std::string& port)>;

LookedUp SystemLookUp(const std::string& host, const std::string& port);

class NameLookup {
 public:
  // Without `look_up`: the system's. An object serves one name.
  explicit NameLookup(asio::io_context& io, LookUp look_up = nullptr);
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // `done` is called later, once, unless the same asker's Cancel or another Begin comes before. A
  // lookup that is still under way is waited for instead of starting a second one.
  void Begin(const void* asker, const std::string& host, const std::string& port,
             std::function<void(LookedUp)> done);
  void Cancel(const void* asker);

  // The address that a user of the name tries (who may ask as another asker every time): as long as
  // it has not Worked for that user (the node sent something), InTurn puts the later addresses
  // first, so that one that never answers does not keep the others from being tried.
  void Trying(const void* user, const asio::ip::tcp::endpoint& endpoint) {
    tried_[user] = endpoint;
  }
  void Worked(const void* user) { tried_.erase(user); }
  [[nodiscard]] TcpEndpoints InTurn(const void* user, TcpEndpoints found) const;

 private:
  struct Shared;
  void OnFound(LookedUp found);

  asio::io_context& io_;
  const LookUp look_up_;
  std::shared_ptr<Shared> shared_;
  bool running_ = false;
  std::map<const void*, std::function<void(LookedUp)>> askers_;
  std::map<const void*, asio::ip::tcp::endpoint> tried_;  // by user
};

}  // namespace fencepost::locking
