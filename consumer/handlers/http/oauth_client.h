// Asks for the token of a handler's calls (OauthToken) on a multi handle that the runner drives: a
// request at a time, however many calls wait for it. One thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/handlers/http/curl_holders.h"
#include "consumer/handlers/http/oauth_token.h"
#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

// A token at once, for who has no multi handle: blocks for `limit` at most, and not once `stop`
// says so. Of `options` it takes auth.oauth and tls_ca. Error: why there is none, without a secret.
// Any thread.
struct FreshToken {
  std::string text;
  std::chrono::seconds life{300};  // where the provider does not say it
};
tl::expected<FreshToken, std::string> AskForToken(const HttpHandlerOptions& options,
                                                  const std::string& user_agent, Millis limit,
                                                  const std::function<bool()>& stop = {});

class OauthClient {
 public:
  // `multi` and the handler's options outlive it. Error: the address is none.
  static tl::expected<std::unique_ptr<OauthClient>, Error> Make(const HttpHandlerOptions& options,
                                                                const std::string& user_agent,
                                                                CURLM* multi);
  OauthClient(const HttpHandlerOptions& options, const std::string& user_agent, CURLM* multi,
              std::string shown);
  OauthClient(const OauthClient&) = delete;
  OauthClient& operator=(const OauthClient&) = delete;

  // What a call carries. nullptr: it waits until OnEnded. Asks where it is time to, for as long as
  // `timeout`.
  const std::string* Token(Millis timeout);
  [[nodiscard]] std::uint64_t number() const { return token_.number(); }
  [[nodiscard]] const OauthToken& token() const { return token_; }
  void OnRefused(std::uint64_t number) { token_.OnRefused(number); }
  // The endpoint refused the client by one way, and the next time it is asked by the other one.
  [[nodiscard]] bool may_know_the_other_way() const { return other_way_; }

  [[nodiscard]] bool Owns(const CURL* easy) const { return easy == easy_.get(); }
  // Its request ended so. A failure: why there is no token; the service was not reached.
  std::optional<HandlerFailure> OnEnded(CURLcode code);

 private:
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);
  void SayWho(std::string_view secret);
  std::string Judge(CURLcode code);

  CURLM* const multi_;
  const OauthOptions oauth_;
  const std::string shown_;  // the endpoint's address, without what may be secret
  OauthToken token_;
  curl::Easy easy_;
  curl::Lines headers_;
  std::string body_;
  // How the client says who it is: by HTTP's basic authentication, as all endpoints shall take it,
  // or in the body, as some only take it (RFC 6749, 2.3.1).
  bool in_body_ = false;
  bool known_ = false;  // the endpoint has given a token for that
  bool other_way_ = false;
  std::string answer_;
  bool too_large_ = false;
  std::string no_secret_;  // why there is none to ask with
  std::array<char, CURL_ERROR_SIZE> words_{};
};

}  // namespace fencepost::consumer
