// The access token that all calls of a handler carry (OAuth 2.0, client credentials: RFC 6749, 4.4;
// a bearer token: RFC 6750): when it is asked for, and what the answer says. Sans-IO: OauthClient
// asks. One thread.
//
// It is asked for when a call needs one, again some time before it expires, and anew once the
// service refuses it. Where the answer does not say when it expires, it is used until then.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "consumer/pipeline/handler_options.h"

namespace fencepost::consumer {

class OauthToken {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // What the endpoint is asked: the body, without the client's id and secret, which are encoded
  // (RFC 6749, 2.3.1).
  static std::string FormEncoded(std::string_view text);
  static std::string BodyOf(const OauthOptions& options);

  // What a call carries now; nullptr: there is none to use, and it waits.
  [[nodiscard]] const std::string* Current(Time now) const;
  // Grows with each token; 0: there was none yet.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] Time expires() const { return expires_; }  // max(): it was not said
  // It is to be asked for now: not while it is, and after a failure not at once where the former
  // one can still be used.
  [[nodiscard]] bool Due(Time now) const;
  void OnAsked() { asking_ = true; }

  // How the endpoint answered. Empty: there is a token; else why there is none, in words that hold
  // nothing of a secret.
  std::string OnAnswer(int status, std::string_view body, Time now);
  // It did not.
  void OnFailed(Time now);
  // The service answered 401 to the one of that number.
  void OnRefused(std::uint64_t number);

 private:
  std::string Take(int status, std::string_view body, Time now);

  std::string token_;  // empty: none
  std::uint64_t number_ = 0;
  bool asking_ = false;
  Time expires_ = Time::max();
  Time renew_ = Time::max();  // asked for from then on, while the former one is used
};

}  // namespace fencepost::consumer
