// What a connection string says, as libpq reads it. Any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fencepost::consumer {

// How many hosts it names; 0: it cannot be read.
std::size_t HostsInDsn(const std::string& dsn);

// Why libpq cannot read it, in words that hold nothing of it but the name of an option that it does
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
