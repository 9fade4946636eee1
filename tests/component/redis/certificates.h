// Certificates made for a test by the openssl command.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace fencepost::locking {

// A CA, and a certificate of it for some names.
class Certificates {
 public:
  static constexpr const char* kNode = "IP:127.0.0.1,DNS:localhost";

  explicit Certificates(const std::string& names = kNode, int days = 1) {
    OpenSsl({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test CA",
             "-keyout", dir_.File("ca.key"), "-out", ca()});
    Issue("node", names, days);
  }
  // One more of the same CA; `days` 0: it has expired as soon as it is there.
  void Issue(const std::string& name, const std::string& names, int days = 1) {
    OpenSsl({"req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + name, "-keyout", key(name),
             "-out", dir_.File("csr")});
    const std::string extensions = dir_.Write("names", "subjectAltName=" + names + "\n");
    OpenSsl({"x509", "-req", "-in", dir_.File("csr"), "-CA", ca(), "-CAkey", dir_.File("ca.key"),
             "-CAcreateserial", "-days", std::to_string(days), "-extfile", extensions, "-out",
             certificate(name)});
  }
  [[nodiscard]] std::string ca() const { return dir_.File("ca.pem"); }
  [[nodiscard]] std::string key(const std::string& name = "node") const {
    return dir_.File(name + ".key");
  }
  [[nodiscard]] std::string certificate(const std::string& name = "node") const {
    return dir_.File(name + ".pem");
  }
  [[nodiscard]] std::string Write(const std::string& name, const std::string& text) const {
    return dir_.Write(name, text);
  }
  void OpenSsl(std::vector<std::string> words) {
    words.insert(words.begin(), "openssl");
    const auto finished = fencepost::testing::RunToEnd({.argv = words});
    if (finished.exit_code != 0) throw std::runtime_error(finished.output);
  }

 private:
  fencepost::testing::TempDir dir_;
};

}  // namespace fencepost::locking
