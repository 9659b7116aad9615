// Fingerprints that occur several times: the bindings.
#pragma once

#include <nanobind/nanobind.h>

namespace robustbn {

void bind_copies(nanobind::module_& m);

}  // namespace robustbn
