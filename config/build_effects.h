// handler and output as the options of consumer/. Internal to config: the values hold no error.
#pragma once

#include "config/read/reader.h"
#include "consumer/pipeline/options.h"

namespace fencepost::config {

consumer::HandlerOptions BuildHandler(const Values& values);
consumer::OutputOptions BuildOutput(const Values& values);

}  // namespace fencepost::config
