// Expected counts of rows with holes: the bindings. See hole_questions.h and hole_solver.h.
#pragma once

#include <nanobind/nanobind.h>

namespace robustbn {

void bind_holes(nanobind::module_& m);

}  // namespace robustbn
