#include "consumer/cli/shared/pipelines.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "config/schema/checks.h"
#include "config/schema/schema.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/record/position_id.h"
#include "consumer/worker/worker_parts.h"
#include "locking/redis/engine/access.h"

namespace fencepost::cli {
namespace {

// MIT Kerberos logs in with the keytab that this variable names, and again before its tickets end,
// without kinit. Before other threads are there: a reload changes nothing of it.
void UseKeytab(const config::LoadResult& loaded) {
  static bool used = false;
  if (!loaded.options || used) return;
  for (const auto& [section, cluster] : ClustersOf(*loaded.options)) {
    if (cluster.kerberos.keytab.empty()) continue;
    setenv("KRB5_CLIENT_KTNAME", cluster.kerberos.keytab.c_str(), 1);
    setenv("KRB5CCNAME", "MEMORY:", 0);
    used = true;
    return;
  }
}

std::string StandardInput() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

// As it was given; a value that is secret, or may hold one, is "…".
std::string SettingInWords(const std::string& setting) {
  const std::string_view path = std::string_view(setting).substr(0, setting.find('='));
  const auto within = [](std::string_view inner, std::string_view outer) {
    return inner == outer || (inner.starts_with(outer) && inner[outer.size()] == '.');
  };
  const bool secret = std::ranges::any_of(config::Schema(), [&](const config::Key& key) {
    return key.secret && (within(key.path, path) || within(path, key.path));
  });
  if (secret) return fmt::format("{}=…", path);
  const config::Key* const key = config::FindKey(path);
  if (key == nullptr || path.size() == setting.size()) return setting;
  return fmt::format("{}={}", path, config::Redacted(key->check, setting.substr(path.size() + 1)));
}

// What was loaded is of no use: a finding, and no options.
void Reject(config::LoadResult& loaded, config::Place at, std::string_view rule, std::string why) {
  config::Findings findings(loaded.sources);
  findings.Error(at, rule, std::move(why));
  for (config::Finding& finding : findings.Take()) loaded.findings.push_back(std::move(finding));
  loaded.options.reset();
  loaded.tests.clear();
}

// Its jq programs are compiled as well.
config::LoadResult WithItsPrograms(config::LoadResult loaded) {
  if (!loaded.options) return loaded;
  const auto reject = [&](const Error& error) {
    // Behind a colon: which of a list.
    Reject(loaded, loaded.PlaceOf(error.where.substr(0, error.where.find(':'))), "jq",
           fmt::format("{}: {}", error.where, error.what));
  };
  const auto filter = consumer::CheckFilters(*loaded.options);
  const auto checked = consumer::CheckPrograms(loaded.options->handler);
  if (!filter) reject(filter.error());
  if (!checked) reject(checked.error());
  return loaded;
}

// Of a file with certificates or a key, or of a folder of them; empty: none that shows.
std::string ProblemOfPem(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return "";
  std::ifstream file(path, std::ios::binary);
  if (!file) return fmt::format("cannot be read: {}", std::strerror(errno));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.find("-----BEGIN ") == std::string::npos ? "is no PEM file (-----BEGIN …)" : "";
}

}  // namespace

std::string ShellWord(const std::string& text) {
  constexpr std::size_t kMostShown = 4000;
  constexpr std::string_view kPlain = "%+,-./:=@_";
  const bool plain = !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 || kPlain.find(static_cast<char>(c)) < kPlain.size();
  });
  if (plain) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return Printable(word + "'", kMostShown);
}

CLI::Option* AddPipelineFiles(CLI::App& command, PipelineFiles& files, const std::string& help) {
  AddBeside(command, files.beside);
  return command.add_option("FILE", files.files, help)->required();
}

CLI::Option* AddPipelineFile(CLI::App& command, PipelineFiles& files, const std::string& help) {
  // The words behind it are the command's own.
  return AddPipelineFiles(command, files, help)->expected(1)->allow_extra_args(false);
}

std::string InWords(const PipelineFiles& pipeline) {
  std::string words = ShellWord(pipeline.files.front());
  for (const std::string& file : pipeline.beside.with) words += " --with " + ShellWord(file);
  for (const std::string& setting : pipeline.beside.set) {
    words += " --set " + ShellWord(SettingInWords(setting));
  }
  return words;
}

void AddBeside(CLI::App& command, config::Beside& beside) {
  command
      .add_option("--with", beside.with,
                  "a file of more sections (kafka, lock, output) for each pipeline; a key is given "
                  "in one of the files")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      .add_option("--set", beside.set,
                  "a value in place of what the files say, as lock.ttl=5s; of a list: [a, b]")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

config::LoadResult LoadFile(const std::string& file, const config::Beside& beside) {
  config::LoadResult loaded = WithItsPrograms(
      file == "-" ? config::LoadText(StandardInput(), "-", config::Environment::Process(), beside)
                  : config::Load(file, config::Environment::Process(), beside));
  UseKeytab(loaded);
  return loaded;
}

// For each one by itself the stand-in with which the fewest findings are errors: the keys know what
// they take.
config::LoadResult LoadFileWithStandIns(const std::string& file, const config::Beside& beside,
                                        std::vector<std::string>& stood_in,
                                        std::function<bool(std::string_view)> where) {
  std::map<std::string, std::string> values;
  config::Environment environment = config::Environment::Process();
  environment.may_stand_in = std::move(where);
  environment.stand_in = [&](const std::string& name) {
    return values.emplace(name, "unset").first->second;
  };
  const std::string input = file == "-" ? StandardInput() : "";
  const auto load = [&] {
    return file == "-" ? config::LoadText(input, "-", environment, beside)
                       : config::Load(file, environment, beside);
  };
  const auto errors = [](const config::LoadResult& loaded) {
    return std::ranges::count(loaded.findings, config::Severity::kError,
                              &config::Finding::severity);
  };
  config::LoadResult best = load();
  for (auto& [name, value] : values) {
    std::string kept = value;
    const std::string host = fmt::format("unset-{}.invalid", stood_in.size() + 1);
    for (const std::string& other : {std::string("unset"), "postgresql://" + host, "http://" + host,
                                     host + ":1", std::string("1")}) {
      if (errors(best) == 0) break;
      value = other;
      config::LoadResult loaded = load();
      if (errors(loaded) >= errors(best)) continue;
      best = std::move(loaded);
      kept = other;
    }
    value = kept;
    stood_in.push_back(name);
  }
  return WithItsPrograms(std::move(best));
}

void CheckTls(config::LoadResult& loaded) {
  if (!loaded.options) return;
  if (const auto problem = locking::TlsProblemOf(loaded.options->lock.redis)) {
    return Reject(loaded, loaded.PlaceOf("lock.redis.tls"), "tls",
                  "lock.redis.tls: " + problem->Line());
  }
  for (const config::Key& key : config::Schema()) {
    const bool file = config::NameOf(config::ParentOf(key.path)) == "tls" && key.to.text;
    if (!file || key.path.starts_with("lock.") || !loaded.places.contains(key.path)) continue;
    const std::string path = key.to.text(*loaded.options);
    const std::string problem = ProblemOfPem(path);
    if (problem.empty()) continue;
    return Reject(loaded, loaded.PlaceOf(key.path), "tls",
                  fmt::format("{}: {} {}", key.path, path, problem));
  }
}

std::optional<std::vector<consumer::PipelineOptions>> LoadPipelines(
    const PipelineFiles& files, std::vector<std::string>* warnings) {
  std::vector<config::LoadResult> loaded;
  std::vector<config::Finding> findings;
  config::Beside beside = files.beside;
  beside.tests = false;
  for (const std::string& file : files.files) {
    loaded.push_back(LoadFile(file, beside));
    CheckTls(loaded.back());
    config::AddNew(findings, loaded.back().findings);
  }
  config::AddNew(findings, config::CheckTogether(loaded));
  for (const config::Finding& finding : findings) {
    if (finding.severity == config::Severity::kError) {
      std::fprintf(stderr, "%s\n", config::FormatFinding(finding).c_str());
    } else if (warnings != nullptr) {
      warnings->push_back(config::FormatFinding(finding));
    }
  }
  if (config::HasErrors(findings)) return std::nullopt;
  std::vector<consumer::PipelineOptions> pipelines;
  for (config::LoadResult& result : loaded) pipelines.push_back(std::move(*result.options));
  return pipelines;
}

std::optional<std::string> WhyNoPosition(const consumer::PipelineOptions& options,
                                         std::string_view id, std::string_view how) {
  if (!options.identity.ByPosition() || consumer::ParsePositionId(id)) return std::nullopt;
  return fmt::format(
      "{} is no id of pipeline {}: its ids are positions (record_id: position), written "
      "CLUSTERID/TOPIC/PARTITION/OFFSET; name the record by {}",
      Printable(id), options.name, how);
}

}  // namespace fencepost::cli
