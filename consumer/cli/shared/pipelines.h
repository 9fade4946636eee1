// Loading the files named on the command line, the same for every command that takes FILE.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/loader.h"
#include "consumer/pipeline/options.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fencepost::cli {

// The pipeline files that a command line names, and what it gives beside each of them.
struct PipelineFiles {
  std::vector<std::string> files;
  config::Beside beside;
};
// FILE..., required, with --with and --set. `files` must outlive the parsing.
CLI::Option* AddPipelineFiles(CLI::App& command, PipelineFiles& files,
                              const std::string& help = "pipeline files");
// FILE, required, with --with and --set.
CLI::Option* AddPipelineFile(CLI::App& command, PipelineFiles& files,
                             const std::string& help = "the pipeline file");
// FILE with its --with and --set, to be copied into another command; no secret that --set gives.
std::string InWords(const PipelineFiles& pipeline);
// --with and --set alone.
void AddBeside(CLI::App& command, config::Beside& beside);

// A file as config loads it, its jq program compiled as well: where that fails there is a finding,
// and no options.
config::LoadResult LoadFile(const std::string& file, const config::Beside& beside);
// The same, with stand-ins for variables that are not set and files that cannot be read: for what
// asks nothing of any server. `stood_in`: their names. `where`: the keys that may have one, by
// their paths; null: all.
config::LoadResult LoadFileWithStandIns(const std::string& file, const config::Beside& beside,
                                        std::vector<std::string>& stood_in,
                                        std::function<bool(std::string_view)> where = nullptr);

// Reads the TLS files that the file names: where one cannot be used there is a finding, and no
// options.
void CheckTls(config::LoadResult& loaded);

// The checked pipelines, or nothing: then every error was printed to stderr (exit 2). Warnings go
// to `warnings`, a line each: who runs the file reads them, not who asks about one record.
std::optional<std::vector<consumer::PipelineOptions>> LoadPipelines(
    const PipelineFiles& files, std::vector<std::string>* warnings = nullptr);

// Why --id ID names no record of a pipeline whose ids are positions, with `how` to name one;
// nothing where it does, or where ids are others.
std::optional<std::string> WhyNoPosition(const consumer::PipelineOptions& options,
                                         std::string_view id, std::string_view how);

// In quotes where a shell needs them.
std::string ShellWord(const std::string& text);

}  // namespace fencepost::cli
