#include "locking/redis/session/name_lookup.h"

#include <netdb.h>
#include <pthread.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace fencepost::locking {

// What the thread may touch when the object is gone.
struct NameLookup::Shared {
  std::mutex mutex;
  NameLookup* owner;  // guarded by mutex; null when gone
};

LookedUp SystemLookUp(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* all = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &all);
  if (error != 0) {
    return tl::unexpected(
        std::string(error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(all, &freeaddrinfo);
  TcpEndpoints endpoints;
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (one->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), one->ai_addr, one->ai_addrlen);
    endpoint.resize(one->ai_addrlen);
    endpoints.push_back(endpoint);
  }
  if (endpoints.empty()) return tl::unexpected(std::string("the name has no address"));
  return endpoints;
}

NameLookup::NameLookup(asio::io_context& io, LookUp look_up)
    : io_(io),
      look_up_(look_up ? std::move(look_up) : SystemLookUp),
      shared_(std::make_shared<Shared>()) {
  shared_->owner = this;
}

NameLookup::~NameLookup() {
  const std::lock_guard lock(shared_->mutex);
  shared_->owner = nullptr;
}

void NameLookup::Cancel(const void* asker) { askers_.erase(asker); }

void NameLookup::Begin(const void* asker, const std::string& host, const std::string& port,
                       std::function<void(LookedUp)> done) {
  askers_[asker] = std::move(done);
  if (running_) return;
  running_ = true;
  const auto work = [shared = shared_, look_up = look_up_, host, port] {
    LookedUp found = look_up(host, port);
    const std::lock_guard lock(shared->mutex);
    if (shared->owner == nullptr) return;
    asio::post(shared->owner->io_, [shared, found = std::move(found)]() mutable {
      // Read on the owner's own thread, which alone changes it.
      if (shared->owner != nullptr) shared->owner->OnFound(std::move(found));
    });
  };
  // Signals are the program's business: none is handled on this thread.
  sigset_t every;
  sigset_t before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  try {
    std::thread(work).detach();
  } catch (const std::system_error& e) {
    asio::post(io_, [shared = shared_, why = std::string(e.what())] {
      if (shared->owner != nullptr) shared->owner->OnFound(tl::unexpected("no thread: " + why));
    });
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TcpEndpoints NameLookup::InTurn(const void* user, TcpEndpoints found) const {
  const auto tried = tried_.find(user);
  if (tried == tried_.end()) return found;
  const auto at = std::find(found.begin(), found.end(), tried->second);
  if (at != found.end()) std::rotate(found.begin(), at + 1, found.end());
  return found;
}

void NameLookup::OnFound(LookedUp found) {
  running_ = false;
  for (const auto& [asker, done] : std::exchange(askers_, {})) done(found);
}

}  // namespace fencepost::locking
