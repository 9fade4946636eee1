// A TCP proxy that makes a network bad on purpose. One thread of its own; all methods may be called
// from any thread, and hold for connections that are open as well as for later ones.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "tests/support/process.h"

namespace fencepost::testing {

class TcpProxy {
 public:
  enum class Way { kToServer, kToClient, kBoth };

  // Forwards 127.0.0.1:port() to 127.0.0.1:target_port.
  explicit TcpProxy(int target_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  void Forward(int target_port);  // there, from now on: connections that come later
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string address() const;
  [[nodiscard]] int connections() const { return connections_; }  // open now

  // Bytes that came in, before they go on.
  struct Passing {
    Way way = Way::kToServer;  // or kToClient
    int connection = 0;        // each has a number of its own
    int client_port = 0;
    std::string_view bytes;
  };
  // Called on the proxy's thread for all bytes, which must not change the proxy. True: these bytes
  // and all of that direction are held until Release, as by a black hole.
  void Watch(std::function<bool(const Passing&)> watch);
  void Release();

  // Bytes take at least that long, from when they come in.
  void Delay(std::chrono::milliseconds delay, Way way = Way::kBoth);
  // Each chunk takes another time, up to `most`; none overtakes.
  void Jitter(std::chrono::milliseconds most);
  // Bytes of that direction are held, connections stay open and new ones are accepted: nobody hears
  // a thing. kToClient alone is "it was done, but the answer was lost".
  void BlackHole(Way way = Way::kBoth);
  // Connections that are open stay so and carry nothing any more, as when a firewall has forgotten
  // them; new ones work. Restore does not bring them back; from then on the server hears it when a
  // client has hung up, as by its keepalives.
  void Forget();
  void Cut();      // resets the open connections; what was held is lost; new ones are accepted
  void Refuse();   // Cut, and new connections are refused
  void Restore();  // no delay, no black hole (what was held goes on), accepts

 private:
  struct Loop;
  template <typename F>
  void Change(F change);
  void Kick();

  int port_ = 0;
  std::atomic<int> connections_{0};
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace fencepost::testing
