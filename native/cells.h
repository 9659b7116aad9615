// Cells that show another value than the true one: the bindings.
#pragma once

#include <nanobind/nanobind.h>

namespace robustbn {

void bind_cells(nanobind::module_& m);

}  // namespace robustbn
