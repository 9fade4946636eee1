#include "consumer/fleet/fleet_look.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "consumer/fleet/ask_port.h"

namespace fencepost::consumer {
namespace {

using std::chrono::steady_clock;

// For a question, however late it is.
constexpr Millis kLeast{100};

// Any member may say anything: what is no more than HOST:PORT leads to a port, and to no other
// path.
bool IsAddress(std::string_view text) {
  const auto odd = [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return !letter && std::string_view(".-_:[]").find(c) == std::string_view::npos;
  };
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < text.size() &&
         std::ranges::none_of(text, odd) &&
         text.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

FleetMember MemberAt(const KafkaAdmin::Member& member, const std::string& port) {
  FleetMember found{.worker = member.name.worker, .address = "", .trouble = ""};
  const std::size_t colon = port.rfind(':');
  if (!member.name.advertised.empty()) {
    found.address = member.name.advertised;
  } else if (member.host.empty()) {
    found.trouble = "the group does not say where it is";
  } else if (colon == std::string::npos || colon + 1 == port.size() || port.ends_with(":0")) {
    found.trouble = "its port is not known: give observe.advertise";
  } else {
    const bool ipv6 = member.host.find(':') != std::string::npos;
    found.address =
        fmt::format("{}{}{}{}", ipv6 ? "[" : "", member.host, ipv6 ? "]" : "", port.substr(colon));
  }
  if (!found.address.empty() && !IsAddress(found.address)) {
    found.address.clear();
    found.trouble = "where it says that it is reached is not HOST:PORT";
  }
  return found;
}

tl::expected<std::string, std::string> StatusIn(PortAnswer answer) {
  if (!answer) return tl::unexpected("no answer: " + answer.error());
  if (answer->status != 200) return tl::unexpected(fmt::format("HTTP {}", answer->status));
  return std::move(answer->body);
}

}  // namespace

std::vector<FleetMember> MembersAt(const std::vector<KafkaAdmin::Member>& members,
                                   const std::string& port) {
  std::set<FleetMember> found;  // a process with two pipelines in the group is two members
  for (const KafkaAdmin::Member& member : members) found.insert(MemberAt(member, port));
  return {found.begin(), found.end()};
}

FleetLook::FleetLook(const std::vector<PipelineOptions>& pipelines, ObserveOptions port,
                     Limits limits, std::optional<Own> own)
    : port_(std::move(port)), limits_(limits), own_(std::move(own)) {
  for (const PipelineOptions& one : pipelines) groups_.push_back(std::make_unique<FleetGroup>(one));
}

std::vector<Fleet> FleetLook::Empty() const {
  std::vector<Fleet> fleets;
  for (const auto& group : groups_) {
    fleets.push_back({.pipeline = group->pipeline(),
                      .group = group->name(),
                      .rows = {},
                      .problem = {},
                      .topics = {}});
  }
  return fleets;
}

std::vector<Fleet> FleetLook::Look() {
  const auto until = steady_clock::now() + limits_.kafka;
  const auto left = [until] {
    return std::max(kLeast, std::chrono::ceil<Millis>(until - steady_clock::now()));
  };
  std::vector<Fleet> fleets = Empty();
  Members all(groups_.size());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    auto members = groups_[i]->Members(left());
    if (members && members->empty()) {
      members = tl::unexpected(Error{"no_worker",
                                     fmt::format("no worker is in group '{}'", fleets[i].group), "",
                                     own_ ? "this one is joining it, or may not describe it"
                                          : "start one, or name workers with --worker HOST:PORT"});
    }
    if (!members) {
      fleets[i].topics = tl::unexpected(members.error().Line());
      fleets[i].problem = std::move(members.error());
      continue;
    }
    all[i] = MembersAt(*members, port_.http);
    fleets[i].topics =
        groups_[i]->Topics(left()).map_error([](const Error& error) { return error.Line(); });
  }
  Ask(fleets, std::move(all));
  return fleets;
}

std::vector<Fleet> FleetLook::Look(const std::vector<std::string>& addresses) {
  std::vector<FleetMember> members;
  for (const std::string& address : addresses) {
    members.push_back({.worker = "", .address = FromHere(address), .trouble = ""});
  }
  std::vector<Fleet> fleets = Empty();
  Ask(fleets, Members(groups_.size(), members));
  return fleets;
}

void FleetLook::TakeOwn(Fleet& fleet, std::vector<FleetMember>& members,
                        const std::string& status) const {
  fleet.rows.push_back(
      RowOf({.address = "", .worker = own_->worker, .status = status}, fleet.pipeline));
  const auto others = std::ranges::stable_partition(
      members, [&](const FleetMember& one) { return one.worker != own_->worker; });
  if (others.size() > 1) {
    fleet.rows.push_back(
        RowOf({.address = others.back().address,
               .worker = own_->worker,
               .status = tl::unexpected<std::string>("another worker has this name, too")},
              fleet.pipeline));
  }
  members.erase(others.begin(), others.end());
}

// Empty: it is.
std::string FleetLook::WhyNotAsked(const FleetMember& member, std::size_t asked) const {
  if (!member.trouble.empty()) return member.trouble;
  if (asked >= limits_.most) return fmt::format("not asked: {} are, at most", limits_.most);
  if (own_ && HasCredentials(port_) && port_.tls.certificate.empty()) {
    return "not asked: it would be sent observe.auth in clear; give the port observe.tls";
  }
  return "";
}

void FleetLook::Ask(std::vector<Fleet>& fleets, Members members) const {
  const std::string own_status = own_ ? own_->status() : "";
  std::map<FleetMember, std::vector<Fleet*>> of;  // the pipelines of each
  for (std::size_t i = 0; i < fleets.size(); ++i) {
    if (own_) TakeOwn(fleets[i], members[i], own_status);
    for (const FleetMember& member : members[i]) of[member].push_back(&fleets[i]);
  }
  const auto take = [](const auto& asked, const tl::expected<std::string, std::string>& status) {
    const auto& [member, of_fleets] = asked;
    for (Fleet* fleet : of_fleets) {
      fleet->rows.push_back(RowOf(
          {.address = member.address, .worker = member.worker, .status = status}, fleet->pipeline));
    }
  };
  std::vector<std::string> urls;
  std::vector<decltype(of)::const_iterator> asked;
  for (auto one = of.cbegin(); one != of.cend(); ++one) {
    const std::string why = WhyNotAsked(one->first, asked.size());
    if (!why.empty()) {
      take(*one, tl::unexpected(why));
      continue;
    }
    asked.push_back(one);
    urls.push_back(PortUrl(port_, one->first.address, "/status"));
  }
  AskPorts(port_, urls, limits_.workers,
           [&](std::size_t i, PortAnswer answer) { take(*asked[i], StatusIn(std::move(answer))); });
  for (Fleet& fleet : fleets) std::ranges::stable_sort(fleet.rows, {}, &FleetRow::worker);
}

}  // namespace fencepost::consumer
