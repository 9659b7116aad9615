// How often two cells are touched by one row: the bindings.
#pragma once

#include <nanobind/nanobind.h>

namespace robustbn {

void bind_pairs(nanobind::module_& m);

}  // namespace robustbn
