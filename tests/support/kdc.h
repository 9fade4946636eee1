// A real KDC (MIT Kerberos) with a realm of its own.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace fencepost::testing {

// The realm EXAMPLE.COM on 127.0.0.1, by TCP. The constructor returns when tickets are given. A
// program finds it by KRB5_CONFIG=krb5_conf(), one of Java by -Djava.security.krb5.conf. Hosts are
// called as clients call them: a broker on 127.0.0.1 is kafka/127.0.0.1.
class Kdc {
 public:
  // No ticket lives longer.
  explicit Kdc(std::chrono::seconds ticket_life = std::chrono::hours(1));

  [[nodiscard]] const std::string& krb5_conf() const { return krb5_conf_; }
  // Gives the principal, which is made where there is none, a new key, and returns a keytab with
  // it. Those from before log nobody in.
  std::string Keytab(const std::string& name);

 private:
  void Run(std::vector<std::string> argv) const;

  TempDir dir_;
  std::string krb5_conf_;
  std::map<std::string, std::string> env_;
  std::unique_ptr<Process> process_;
  std::set<std::string> principals_;
  int keytabs_ = 0;
};

}  // namespace fencepost::testing
