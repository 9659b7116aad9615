// What module.cpp and kernels.cpp share: plain structs, no library types, so that nothing compiled
// for a wide instruction set can be picked by the linker for a narrow machine.
#pragma once
#include <cstddef>
#include <cstdint>

namespace robustbn {

// Rows are stored in blocks of BLOCK rows; inside a block each group's codes are contiguous.
constexpr int BLOCK = 256;

// A group is a set of columns whose joint state is stored as one code of 1, 2 or 4 bytes.
struct Group {
    int width;                // bytes of a code
    int n_columns;            // columns fused into the code, first one slowest
    const int32_t* columns;   // which columns
    const int32_t* cards;     // their numbers of states
    size_t offset;            // of this group's codes inside a block, in bytes
    size_t first_entry;       // of this group's part of an expanded table
    size_t n_entries;         // different codes: the joint states, unless
    const uint16_t* fold;     // ... the code of joint state s is fold[s]; or
    bool is_blanked;          // ... n_entries - 1 stands for any state beyond its column's cards
};

struct Groups {
    const Group* group;
    int n;                    // groups that touch cells, the first ones
    int n_packed;             // all groups; the spare ones only help to tell rows apart
    size_t block_bytes;
    size_t n_entries;
};

struct SampledNode {
    int column;
    int card;
    int n_parents;
    const int32_t* parents;      // columns
    const int32_t* parent_cards;
    const int32_t* thresholds;   // (configurations, card - 1): cumulative probability times 2^30
};

// What handles the codes of single columns, which have one byte or two.
template <class Column>
struct ColumnKernels {
    // columns[j * BLOCK + r] = codes[r][j] for r < n_rows; the rest of each column is zero.
    void (*load_columns)(const Column* codes, ptrdiff_t row_stride, ptrdiff_t column_stride,
                         int n_rows, int n_columns, Column* columns);
    // The largest code in each column of a block.
    void (*column_maxima)(const Column* columns, int n_columns, Column* maxima);
    void (*pack_block)(const Column* columns, const Groups& groups, uint8_t* block);
    // Draw BLOCK rows; `nodes` in topological order; columns as in load_columns.
    void (*sample_block)(const SampledNode* nodes, int n_nodes, uint64_t key, uint64_t first_row,
                         Column* columns);
    // codes[r][j] = columns[j * BLOCK + r], row-major
    void (*store_columns)(const Column* columns, int n_rows, int n_columns, Column* codes);
};

struct Kernels {
    const char* name;
    ColumnKernels<uint8_t> bytes;
    ColumnKernels<uint16_t> words;
    // y[r] = sum over groups of table[code of row r] - offset; `width` floats a row: 4, 8 or 16.
    void (*project_block)(int width, const uint8_t* block, const Groups& groups,
                          const float* table, const float* offset, int n_rows, float* y);
    // total[code of row r] += y[r] for every group.
    void (*scatter_block)(int width, const uint8_t* block, const Groups& groups, const float* y,
                          int n_rows, float* total);
    // norms[r] = |y[r]|^2
    void (*square_norms)(int width, const float* y, int n_rows, float* norms);
    // y[r] *= weights[r]
    void (*scale_rows)(int width, const double* weights, int n_rows, float* y);
    void (*scale_rows_float)(int width, const float* weights, int n_rows, float* y);
    // y[r] = weights[r] softmax(y[r]) over the first columns, 0 beyond; masses += their sums over the
    // rows; logs[r] = log of the sum of exp(y[r])
    void (*divide_rows)(int width, int used, const float* weights, int n_rows, float* y, float* logs,
                        double* masses);
    // y[r] = weights[r] / (1 + exp(against[r] - y[r])), each column on its own; masses and logs +=
    // the sums over the rows of that, and of weights[r] log(1 + exp(y[r] - against[r]))
    void (*divide_rows_apart)(int width, int used, const float* weights, const float* against,
                              int n_rows, float* y, double* masses, double* logs);
    // odds[r] = log of the sum of exp(y[r]) from column `first` on, less that of the columns before;
    // with masses: y[r] = weights[r] divided between the two by intercept + slope odds[r], and on each
    // side by softmax; masses += the sums over the rows
    void (*divide_rows_in_two)(int width, int first, int used, float intercept, float slope,
                               const float* weights, int n_rows, float* y, float* odds,
                               double* masses);
    // total += part; part = 0
    void (*flush)(float* part, double* total, size_t n);
    // histogram[code] += 1 over the rows of consecutive blocks
    void (*count_blocks)(const uint8_t* blocks, const Groups& groups, size_t n_rows,
                         uint32_t* histogram);
    void (*count_blocks_weighted)(const uint8_t* blocks, const Groups& groups, size_t n_rows,
                                  const double* weights, double* histogram);
    void (*count_blocks_weighted_float)(const uint8_t* blocks, const Groups& groups, size_t n_rows,
                                        const float* weights, double* histogram);
    // hashes[r] = sum over groups of tables[group][code of row r]; no table, nothing added
    void (*hash_block)(const uint8_t* block, const Groups& groups, const uint64_t* const* tables,
                       uint64_t* hashes);
    // whether every code of the first groups of a block is below its group's n_entries
    bool (*has_codes)(const uint8_t* block, const Groups& groups, int n_groups);
};

// The finalizer of splitmix64. Static, so that each file keeps its own.
static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

// mix(z) >> 34: the last step of `mix` does not reach that far.
static inline uint64_t mix_high(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    return ((z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB)) >> 34;
}

constexpr uint64_t GOLDEN = UINT64_C(0x9E3779B97F4A7C15);  // an odd step through all 64-bit numbers

// Several sub-histograms for one-byte codes keep equal neighbours from waiting for each other.
constexpr int WAYS = 4;

}  // namespace robustbn
