// handler and output as the options of consumer/. Internal to config: the values hold no error.
#pragma once

#include "config/read/reader.h"
#include "consumer/pipeline/options.h"

namespace fencepost::config {

// Of the section at `path`.
consumer::RegistryOptions BuildRegistry(const Values& values, const std::string& path);
consumer::HandlerOptions BuildHandler(const Values& values);
consumer::OutputOptions BuildOutput(const Values& values);

}  // namespace fencepost::config
