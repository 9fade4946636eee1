// fencepost schema: the JSON Schema of the pipeline file, for editors.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "config/schema/json_schema.h"
#include "consumer/cli/shared/command.h"

namespace fencepost::cli {

void AddSchema(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("schema", "print the JSON Schema of the pipeline file, for editors");
  command->callback([&run] {
    run = [] {
      const std::string schema = config::JsonSchemaText();
      std::fwrite(schema.data(), 1, schema.size(), stdout);
      return std::fflush(stdout) == 0 ? kOk : kFailed;
    };
  });
}

}  // namespace fencepost::cli
