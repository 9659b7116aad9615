// What C++17 leaves to compilers: wide vectors. And the machines that are refused.
//
// GCC and clang have vectors in the language. Where they are missing (MSVC; GCC below 12 for bytes),
// or with ROBUSTBN_PLAIN, arrays do the same in the same order: the same bits, as fast as the
// compiler makes them. Everything here is unnamed, so that each instruction set keeps its own.
#pragma once

// Offsets into tables and blocks may need 64 bits; codes of rows are written and read as bytes and
// as words. Neither was ever tried on other machines: they are refused, here and in Python.
#if defined(_MSC_VER) ? !defined(_WIN64) : __SIZEOF_SIZE_T__ != 8
#error "robustbn needs a 64-bit machine; this compiler builds for another."
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "robustbn needs a little-endian machine; this compiler builds for a big-endian one."
#endif

#include <cstddef>
#include <cstdint>

#if defined(__GNUC__) && !defined(ROBUSTBN_PLAIN)
#define ROBUSTBN_WIDE_FLOATS
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ROBUSTBN_WIDE_BYTES
#endif
#endif
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // wide vectors never cross a call: all is inlined
#endif

namespace robustbn {
namespace {

// W floats that are added at once; may lie at any address of a float.
#ifdef ROBUSTBN_WIDE_FLOATS
template <int W>
struct Wide {
    typedef float type __attribute__((vector_size(4 * W), aligned(4), may_alias));
};
#else
template <int W>
struct Wide {
    struct type {
        float at[W];
        type& operator+=(const type& other) {
            for (int c = 0; c < W; ++c) at[c] += other.at[c];
            return *this;
        }
    };
};
#endif

// 16 bytes. The low (high) halves of two are interleaved: a b a b ...
#ifdef ROBUSTBN_WIDE_BYTES
typedef uint8_t Bytes __attribute__((vector_size(16), may_alias));

inline Bytes interleave_low(Bytes a, Bytes b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

inline Bytes interleave_high(Bytes a, Bytes b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
}
#else
struct Bytes {
    uint8_t at[16];
};

inline Bytes interleave_halves(const uint8_t* a, const uint8_t* b) {
    Bytes out;
    for (int i = 0; i < 8; ++i) {
        out.at[2 * i] = a[i];
        out.at[2 * i + 1] = b[i];
    }
    return out;
}

inline Bytes interleave_low(const Bytes& a, const Bytes& b) {
    return interleave_halves(a.at, b.at);
}

inline Bytes interleave_high(const Bytes& a, const Bytes& b) {
    return interleave_halves(a.at + 8, b.at + 8);
}
#endif

}  // namespace
}  // namespace robustbn
