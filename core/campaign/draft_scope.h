#pragma once
// Which files of a job may be edited and which must stay: part of init.

#include "core/campaign/init.h"
#include "core/repo/python_options.h"

namespace infrarsi {

// Fills scope.editable and scope.frozen of the draft with a reason for each pattern.
void draft_scope(Draft& draft, const PythonClosure& closure, const std::vector<std::string>& project_files);

}  // namespace infrarsi
