// How clients log in at Amazon MSK by IAM: with tokens that librdkafka asks for when a client
// starts and after 80% of a token's life, and again after ten seconds where there was none, which
// is an error of its own (_AUTHENTICATION). They are asked for on the client's background thread,
// so that a client that nobody polls has them too.
#pragma once

#include <librdkafka/rdkafka.h>

#include <string>

#include <tl/expected.hpp>

#include "locking/base/error.h"

namespace fencepost::consumer {

// What stands for it among settings: the region. It is none of librdkafka's.
inline constexpr const char* kMskSetting = "fencepost.msk.region";

void LoginByMsk(rd_kafka_conf_t* conf, const std::string& region);  // before the client is made
// After it; nothing where it logs in otherwise.
tl::expected<void, Error> AskForMskTokens(rd_kafka_t* client);

}  // namespace fencepost::consumer
