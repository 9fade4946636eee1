// The rows of a login by OAuth's client credentials grant, which several sections have.
#pragma once

#include <string_view>
#include <vector>

#include "config/schema/checks.h"
#include "config/schema/schema.h"

namespace fencepost::config {

// `of`: the section, which reaches its OauthOptions; `help` of it, and `from` of token_url.
template <typename Of>
std::vector<Key> OauthKeys(const Of& of, std::string_view help, std::string_view from) {
  using consumer::OauthOptions;
  return {
      of("", help),
      of("token_url", &OauthOptions::token_url, from, {.check = CheckHttpUrl, .required = true}),
      of("client_id", &OauthOptions::client_id, "The client.", {.required = true}),
      of("client_secret", &OauthOptions::client_secret, "Its secret.",
         {.required = true, .empty_text = true}),
      of("scope", &OauthOptions::scope, "Scopes to ask for, separated by spaces.")};
}

}  // namespace fencepost::config
