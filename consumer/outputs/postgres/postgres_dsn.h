// What a connection string says, as libpq reads it. Any thread.
#pragma once

#include <cstddef>
#include <string>

namespace fencepost::consumer {

// How many hosts it names; 0: it cannot be read.
std::size_t HostsInDsn(const std::string& dsn);

// Of libpq, at run time: "15.14".
std::string PostgresClientVersion();

}  // namespace fencepost::consumer
