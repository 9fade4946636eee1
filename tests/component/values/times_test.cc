// Times and dates.
#include "tests/component/values/values.h"

namespace fencepost::consumer {

VALUES(Times, {{"a number with its unit is that point in time",
                "1735689600123",
                "ms",
                {{"postgres timestamp", "2025-01-01 00:00:00.123"},
                 {"postgres timestamptz", "2025-01-01 00:00:00.123+00"},
                 {"mysql datetime(3)", "2025-01-01 00:00:00.123"},
                 {"mysql timestamp(3)", "2025-01-01 00:00:00.123"},
                 {"sqlite text", "'2025-01-01T00:00:00.123000Z'"}}}});

}  // namespace fencepost::consumer
