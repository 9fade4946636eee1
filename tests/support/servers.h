// Everything a test may start, in one include.
#pragma once

#include "tests/support/http.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/postgres_server.h"
#include "tests/support/process.h"
#include "tests/support/redis_server.h"
#include "tests/support/tcp_proxy.h"
