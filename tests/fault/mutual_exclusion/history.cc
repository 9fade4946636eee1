#include "tests/fault/mutual_exclusion/history.h"

#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "tests/fault/mutual_exclusion/judge.h"

namespace fencepost::torture {
namespace {

using Kind = Entry::Kind;

std::string LineOf(const Entry& asked, const std::string& rest) {
  const bool read = asked.kind == Kind::kRead;
  return fmt::format(
      R"({{"object":"counter","name":{},"what":"{}","token":{},"value":{},"call":{}{}}})",
      asked.name, read ? "read" : "write", asked.token, asked.value, asked.at_ns, rest);
}

}  // namespace

void History::Hear(const std::vector<Entry>& journal) {
  AddLeases(journal);
  AddRequests(journal);
}

// Where a lease begins and ends is the judge's business.
void History::AddLeases(const std::vector<Entry>& journal) {
  Judge judge;
  judge.Hear(journal);
  for (const Held& lease : judge.leases()) {
    lines_.push_back(fmt::format(
        R"({{"object":"lock","name":{},"what":"acquire","token":{},"call":{},"return":{}}})",
        lease.name, lease.token, lease.asked_ns, lease.from_ns));
    lines_.push_back(
        fmt::format(R"({{"object":"lock","name":{},"what":"end","token":{},"call":{}}})",
                    lease.name, lease.token, lease.to_ns));
  }
}

// A holder asks one thing at a time.
void History::AddRequests(const std::vector<Entry>& journal) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, Entry> open;
  for (const Entry& entry : journal) {
    const auto key = std::pair(entry.name, entry.token);
    if (entry.kind == Kind::kRead || entry.kind == Kind::kWrite) {
      if (!open.emplace(key, entry).second) throw std::runtime_error("two requests at once");
    } else if (entry.kind == Kind::kAdmitted || entry.kind == Kind::kRefused) {
      const auto asked = open.extract(key);
      if (!asked) throw std::runtime_error("an answer that nobody asked for");
      lines_.push_back(LineOf(
          asked.mapped(), fmt::format(R"(,"admitted":{},"answer":{},"return":{})",
                                      entry.kind == Kind::kAdmitted, entry.value, entry.at_ns)));
    }
  }
  for (const auto& [key, asked] : open) lines_.push_back(LineOf(asked, ""));
}

void History::WriteTo(const std::string& path) const {
  std::ofstream out(path);
  for (const std::string& line : lines_) out << line << '\n';
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

}  // namespace fencepost::torture
