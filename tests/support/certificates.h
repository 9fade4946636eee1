// Certificates made for a test by the openssl command.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace fencepost::testing {

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
  // So that a server of another user can read them all.
  void LetAllRead() const {
    using std::filesystem::perms;
    for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
      permissions(file.path(), perms::others_read | perms::owner_read | perms::owner_write);
    }
    permissions(dir_.path(), perms::owner_all | perms::others_exec);
  }
  void OpenSsl(std::vector<std::string> words) {
    words.insert(words.begin(), "openssl");
    const auto finished = RunToEnd({.argv = words});
    if (finished.exit_code != 0) throw std::runtime_error(finished.output);
  }

 private:
  TempDir dir_;
};

}  // namespace fencepost::testing
