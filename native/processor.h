// Which instruction sets this processor has, and the system lets us use.
#pragma once

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#define ROBUSTBN_CPUID
#elif defined(ROBUSTBN_CPUID)  // for a test that compares both ways
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace robustbn {

#ifdef ROBUSTBN_CPUID

// Bits as in Intel's manual, volume 2, CPUID: leaf 1 in ECX, leaf 7 in EBX; and XCR0, in which the
// system says which registers it keeps for us.
inline bool has_bits(unsigned found, unsigned wanted) { return (found & wanted) == wanted; }

inline bool has_features(unsigned wanted, unsigned registers) {
    constexpr unsigned FMA_XSAVE_AVX = 1u << 12 | 1u << 27 | 1u << 28;
    int leaf[4];
    __cpuidex(leaf, 0, 0);
    if (leaf[0] < 7) return false;
    __cpuidex(leaf, 1, 0);
    if (!has_bits(unsigned(leaf[2]), FMA_XSAVE_AVX)) return false;
    if (!has_bits(unsigned(_xgetbv(0)), registers)) return false;
    __cpuidex(leaf, 7, 0);
    return has_bits(unsigned(leaf[1]), wanted);
}

inline bool has_avx2() { return has_features(1u << 3 | 1u << 5 | 1u << 8, 0x06); }

inline bool has_avx512() {
    return has_avx2() && has_features(1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, 0xE6);
}

#else

inline bool has_avx2() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

inline bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#endif

}  // namespace robustbn
