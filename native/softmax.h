// Dividing rows among columns. Included by kernels.cpp, so compiled once for each instruction set:
// plain loops over floats in a fixed order, so that all sets give the same numbers.
#pragma once
#include <cstdint>
#include <cstring>

#include "kernels.h"

namespace robustbn {
namespace {

// exp(x) for x <= 0, to within 2e-7 of it; never below exp(-80), so that no sum meets subnormals.
inline float exp_negative(float x) {
    const float kept = x > -80.0f ? x : -80.0f;
    const int32_t power = int32_t(kept * 1.44269504f - 0.5f);  // rounds to nearest: x is not positive
    const float n = float(power);
    const float rest = (kept - n * 0.693145752f) - n * 1.42860677e-6f;  // log 2 in two parts
    float sum = 1.0f / 5040;
    sum = sum * rest + 1.0f / 720;
    sum = sum * rest + 1.0f / 120;
    sum = sum * rest + 1.0f / 24;
    sum = sum * rest + 1.0f / 6;
    sum = sum * rest + 0.5f;
    sum = sum * rest + 1.0f;
    sum = sum * rest + 1.0f;
    const int32_t bits = (power + 127) << 23;
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

// log(x) for normal x >= 1, to within 1e-7 of it.
inline float log_of(float x) {
    int32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const int32_t power = (bits - 0x3f2aaaab) >> 23;  // x = 2^power m with m from 2/3 to 4/3
    const int32_t rest = bits - (power << 23);
    float m;
    std::memcpy(&m, &rest, sizeof m);
    const float z = (m - 1.0f) / (m + 1.0f), square = z * z;
    float sum = 1.0f / 9;
    sum = sum * square + 1.0f / 7;
    sum = sum * square + 1.0f / 5;
    sum = sum * square + 1.0f / 3;
    sum = sum * square + 1.0f;
    return float(power) * 0.693147181f + 2.0f * z * sum;
}

// Rows are turned into columns and back, so that every step is one over many rows.
template <int W>
void to_columns(const float* y, int n_rows, float (&columns)[W][BLOCK]) {
    std::memset(columns, 0, sizeof columns);
    for (int r = 0; r < n_rows; ++r)
        for (int c = 0; c < W; ++c) columns[c][r] = y[r * W + c];
}

// Columns from `used` on become 0.
template <int W>
void to_rows(float (&columns)[W][BLOCK], int used, int n_rows, float* y) {
    for (int c = used; c < W; ++c) std::memset(columns[c], 0, sizeof columns[c]);
    for (int r = 0; r < n_rows; ++r)
        for (int c = 0; c < W; ++c) y[r * W + c] = columns[c][r];
}

// largest = of some columns of each row; those columns = exp(column - largest); sum = their sum.
template <int W>
void exponentiate(float (&columns)[W][BLOCK], int begin, int end, float (&largest)[BLOCK],
                  float (&sum)[BLOCK]) {
    std::memcpy(largest, columns[begin], sizeof largest);
    for (int c = begin + 1; c < end; ++c)
        for (int r = 0; r < BLOCK; ++r)
            largest[r] = columns[c][r] > largest[r] ? columns[c][r] : largest[r];
    for (int r = 0; r < BLOCK; ++r) sum[r] = 0.0f;
    for (int c = begin; c < end; ++c)
        for (int r = 0; r < BLOCK; ++r) {
            columns[c][r] = exp_negative(columns[c][r] - largest[r]);
            sum[r] += columns[c][r];
        }
}

// column *= share; mass += the sum of that over the rows.
inline void share_out(float (&column)[BLOCK], const float (&share)[BLOCK], double& mass) {
    constexpr int lanes = 16;
    float parts[lanes] = {};
    for (int r = 0; r < BLOCK; r += lanes)
        for (int k = 0; k < lanes; ++k) {
            column[r + k] *= share[r + k];
            parts[k] += column[r + k];
        }
    for (int k = 0; k < lanes; ++k) mass += double(parts[k]);
}

// For columns c < used, with e[r] = the sum over them of exp(y[r][c]): logs[r] = log e[r], y[r][c] =
// weights[r] exp(y[r][c]) / e[r], masses[c] += the sum of that over the rows. Other columns become 0.
template <int W>
void divide_rows_of(int used, const float* weights, int n_rows, float* y, float* logs,
                    double* masses) {
    alignas(64) float columns[W][BLOCK], largest[BLOCK], sum[BLOCK], share[BLOCK] = {};
    to_columns(y, n_rows, columns);
    exponentiate(columns, 0, used, largest, sum);
    for (int r = 0; r < BLOCK; ++r) largest[r] += log_of(sum[r]);
    std::memcpy(share, weights, size_t(n_rows) * sizeof(float));
    for (int r = 0; r < BLOCK; ++r) share[r] /= sum[r];
    for (int c = 0; c < used; ++c) share_out(columns[c], share, masses[c]);
    to_rows(columns, used, n_rows, y);
    std::memcpy(logs, largest, size_t(n_rows) * sizeof(float));
}

// For each column c < used alone, with v = y[r][c] - against[r]: y[r][c] = weights[r] / (1 + exp(-v));
// masses[c] += the sum of that over the rows, logs[c] += the sum of weights[r] log(1 + exp(v)).
template <int W>
void divide_rows_apart_of(int used, const float* weights, const float* against, int n_rows, float* y,
                          double* masses, double* logs) {
    constexpr int lanes = 16;
    alignas(64) float columns[W][BLOCK], given[BLOCK] = {}, minus[BLOCK] = {};
    to_columns(y, n_rows, columns);
    std::memcpy(given, weights, size_t(n_rows) * sizeof(float));
    std::memcpy(minus, against, size_t(n_rows) * sizeof(float));
    for (int c = 0; c < used; ++c) {
        float parts[lanes] = {}, sums[lanes] = {};
        for (int first = 0; first < BLOCK; first += lanes)
            for (int k = 0; k < lanes; ++k) {
                const int r = first + k;
                const float v = columns[c][r] - minus[r];
                const float size = v > 0.0f ? v : -v;
                const float e = exp_negative(-size), sure = 1.0f / (1.0f + e);
                columns[c][r] = given[r] * (v > 0.0f ? sure : e * sure);
                parts[k] += columns[c][r];
                sums[k] += given[r] * ((v > 0.0f ? v : 0.0f) + log_of(1.0f + e));
            }
        for (int k = 0; k < lanes; ++k) {
            masses[c] += double(parts[k]);
            logs[c] += double(sums[k]);
        }
    }
    to_rows(columns, used, n_rows, y);
}

// Columns of two sides, c < first and first <= c < used; e0[r] and e1[r] = the sums over each of
// exp(y[r][c]); odds[r] = log e1[r] - log e0[r]. With masses, the second side gets the share 1 / (1 +
// exp(-intercept - slope odds[r])) of weights[r], the first one what is left, divided among its columns
// as exp(y[r][c]) are: that is written to y, and its sums over the rows are added to masses.
template <int W>
void divide_rows_in_two_of(int first, int used, float intercept, float slope, const float* weights,
                           int n_rows, float* y, float* odds, double* masses) {
    alignas(64) float columns[W][BLOCK], largest[2][BLOCK], sum[2][BLOCK], found[BLOCK];
    to_columns(y, n_rows, columns);
    exponentiate(columns, 0, first, largest[0], sum[0]);
    exponentiate(columns, first, used, largest[1], sum[1]);
    for (int r = 0; r < BLOCK; ++r)
        found[r] = (largest[1][r] - largest[0][r]) + (log_of(sum[1][r]) - log_of(sum[0][r]));
    std::memcpy(odds, found, size_t(n_rows) * sizeof(float));
    if (!masses) return;
    alignas(64) float given[BLOCK] = {};
    std::memcpy(given, weights, size_t(n_rows) * sizeof(float));
    for (int r = 0; r < BLOCK; ++r) {
        const float v = intercept + slope * found[r], size = v > 0.0f ? v : -v;
        const float e = exp_negative(-size), sure = 1.0f / (1.0f + e);
        sum[0][r] = given[r] * (v > 0.0f ? e * sure : sure) / sum[0][r];
        sum[1][r] = given[r] * (v > 0.0f ? sure : e * sure) / sum[1][r];
    }
    for (int c = 0; c < used; ++c) share_out(columns[c], sum[c < first ? 0 : 1], masses[c]);
    to_rows(columns, used, n_rows, y);
}

void divide_rows(int width, int used, const float* weights, int n_rows, float* y, float* logs,
                 double* masses) {
    if (width == 4) divide_rows_of<4>(used, weights, n_rows, y, logs, masses);
    else if (width == 8) divide_rows_of<8>(used, weights, n_rows, y, logs, masses);
    else divide_rows_of<16>(used, weights, n_rows, y, logs, masses);
}

void divide_rows_apart(int width, int used, const float* weights, const float* against, int n_rows,
                       float* y, double* masses, double* logs) {
    if (width == 4) divide_rows_apart_of<4>(used, weights, against, n_rows, y, masses, logs);
    else if (width == 8) divide_rows_apart_of<8>(used, weights, against, n_rows, y, masses, logs);
    else divide_rows_apart_of<16>(used, weights, against, n_rows, y, masses, logs);
}

void divide_rows_in_two(int width, int first, int used, float intercept, float slope,
                        const float* weights, int n_rows, float* y, float* odds, double* masses) {
    if (width == 4)
        divide_rows_in_two_of<4>(first, used, intercept, slope, weights, n_rows, y, odds, masses);
    else if (width == 8)
        divide_rows_in_two_of<8>(first, used, intercept, slope, weights, n_rows, y, odds, masses);
    else
        divide_rows_in_two_of<16>(first, used, intercept, slope, weights, n_rows, y, odds, masses);
}

}  // namespace
}  // namespace robustbn
