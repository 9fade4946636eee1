// What a connection string says, as libpq reads it. Any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// What it gives, by libpq's keywords; empty: libpq cannot read it.
struct DsnPart {
  std::string keyword;
  std::string value;
  bool secret = false;  // a password
};
std::vector<DsnPart> PartsOfDsn(const std::string& dsn);

// The keywords of libpq that keys of output.postgres give, in their order: (key, keyword).
inline constexpr std::pair<std::string_view, std::string_view> kDsnKeys[] = {
    {"host", "host"},         {"port", "port"},       {"user", "user"},
    {"password", "password"}, {"database", "dbname"}, {"sslmode", "sslmode"}};

// The dsn and the keys beside it but for the password, as key='value' …; without keys the dsn.
std::string ConnectionString(const PostgresOptions& options);

// How many hosts it names; 0: it cannot be read.
std::size_t HostsInDsn(const std::string& dsn);

// Whether it is a URL with an @ besides the one that ends user and password: where a password holds
// one, or a /, libpq takes the rest of the password for a host, a port or a database, and shows it.
bool LoginIsAmbiguous(const std::string& dsn);

// Why it cannot be used, in words that hold nothing of it but the name of an option that libpq does
// not know (it may be a part of a password: show it only where it resembles one of DsnOptions).
struct DsnProblem {
  std::string what;
  std::string option;  // the unknown one; or empty
};
std::optional<DsnProblem> ProblemOfDsn(const std::string& dsn);
std::vector<std::string> DsnOptions();

// Of libpq, at run time: "15.14".
std::string PostgresClientVersion();

}  // namespace fencepost::consumer
