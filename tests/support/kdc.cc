#include "tests/support/kdc.h"

#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace fencepost::testing {
namespace {

constexpr Deadline kStartLimit = std::chrono::seconds(20);
constexpr std::string_view kRealm = "EXAMPLE.COM";
constexpr const char* kAdmin = "/usr/sbin/kadmin.local";

// By TCP, and without a look into the DNS for names of hosts and realms.
std::string ClientConfig(int port) {
  return fmt::format(
      "[libdefaults]\n"
      "  default_realm = {0}\n"
      "  dns_lookup_kdc = false\n"
      "  dns_lookup_realm = false\n"
      "  dns_canonicalize_hostname = false\n"
      "  rdns = false\n"
      "  udp_preference_limit = 1\n"
      "[realms]\n"
      "  {0} = {{\n"
      "    kdc = 127.0.0.1:{1}\n"
      "  }}\n",
      kRealm, port);
}

std::string ServerConfig(int port, const TempDir& dir, std::chrono::seconds life) {
  return fmt::format(
      "[kdcdefaults]\n"
      "  kdc_listen = \"\"\n"
      "  kdc_tcp_listen = 127.0.0.1:{1}\n"
      "[realms]\n"
      "  {0} = {{\n"
      "    database_name = {2}\n"
      "    key_stash_file = {3}\n"
      "    max_life = {4}s\n"
      "  }}\n"
      "[logging]\n"
      "  kdc = STDERR\n",
      kRealm, port, dir.File("principal"), dir.File("stash"), life.count());
}

}  // namespace

Kdc::Kdc(std::chrono::seconds ticket_life) {
  const int port = FreePort();
  krb5_conf_ = dir_.Write("krb5.conf", ClientConfig(port));
  env_ = {{"KRB5_CONFIG", krb5_conf_},
          {"KRB5_KDC_PROFILE", dir_.Write("kdc.conf", ServerConfig(port, dir_, ticket_life))}};
  Run({"/usr/sbin/kdb5_util", "create", "-s", "-P", "master"});
  process_ = std::make_unique<Process>(
      ProcessOptions{.argv = {"/usr/sbin/krb5kdc", "-n", "-P", dir_.File("pid")}, .env = env_});
  RequireWithin(kStartLimit, "krb5kdc to start", [this] {
    if (!process_->Running()) throw std::runtime_error("krb5kdc: " + process_->Output());
    return process_->Output().find("commencing operation") != std::string::npos;
  });
}

std::string Kdc::Keytab(const std::string& name) {
  if (principals_.insert(name).second) Run({kAdmin, "addprinc", "-randkey", name});
  std::string path = dir_.File(fmt::format("{}.keytab", ++keytabs_));
  Run({kAdmin, "ktadd", "-k", path, name});
  return path;
}

void Kdc::Run(std::vector<std::string> argv) const {
  const std::string name = argv.front();
  const Finished done = RunToEnd({.argv = std::move(argv), .env = env_});
  if (done.exit_code != 0) throw std::runtime_error(name + ": " + done.output);
}

}  // namespace fencepost::testing
