// The steps of a model as a picture.
#ifndef OPMILL_CLIENT_CLI_EXPLAIN_SVG_H_
#define OPMILL_CLIENT_CLI_EXPLAIN_SVG_H_

#include <string>

#include "opmill/v1/service.pb.h"

namespace opmill {

// A complete document, from the first step at the top to the last: a box for each step, with the
// nodes that it computes, in a colour by its share, and lines to the steps that read its
// results.
std::string ExplainSvg(const std::string& title, const v1::ExplainModelResponse& explained);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_EXPLAIN_SVG_H_
