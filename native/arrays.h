// What arrays that come from Python must be before their memory is looked at.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

namespace robustbn {

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// NumPy's arrays may begin at any address; those of whole numbers of entries alone can be read.
template <class Array>
void require_aligned(const Array& array) {
    require(!array.size() || reinterpret_cast<uintptr_t>(array.data()) % array.itemsize() == 0,
            "an array is not aligned");
}

template <class Array>
void require_aligned(const std::optional<Array>& array) {
    if (array) require_aligned(*array);
}

template <class First, class Second, class... More>
void require_aligned(const First& first, const Second& second, const More&... more) {
    require_aligned(first);
    require_aligned(second, more...);
}

}  // namespace robustbn
