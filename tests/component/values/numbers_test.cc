// Whole numbers, decimals, floats, booleans.
#include "tests/component/values/values.h"

namespace fencepost::consumer {

VALUES(Numbers,
       {{"a whole number is one however it is written",
         "1.0",
         "",
         {{"postgres mysql sqlite integer", "1"}, {"postgres mysql sqlite smallint", "1"}}},
        {"a fraction is no whole number",
         "1.5",
         "",
         {{"postgres mysql integer", "! is not a whole number"}}},
        {"a number beyond the column is refused",
         "32768",
         "",
         {{"postgres mysql smallint", "! out of the type's range"}}},
        {"all digits of a decimal are kept",
         "0.1000000000000000000000001",
         "",
         {{"postgres numeric", "0.1000000000000000000000001"},
          {"sqlite text", "'0.1000000000000000000000001'"}}},
        {"no convert that cannot fill the column is taken",
         "1",
         "ms",
         {{"postgres bigint", "! convert: ms cannot fill"}}},
        {"no convert of another name is taken",
         "1",
         "minutes",
         {{"postgres mysql sqlite integer", "! \"minutes\" is none of"}}}});

}  // namespace fencepost::consumer
