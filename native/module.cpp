// Bindings, threads and the choice of instruction set. The kernels are in kernels.cpp.
//
// Results do not depend on the number of threads: rows are cut into lanes by a rule that knows only
// the number of rows and the size of the tables, each lane sums on its own, and lanes are added in
// order. Sums stay accurate for any number of rows: counts are integers or doubles; `gram` sums in
// float for at most FLUSH_ROWS rows at a time, then adds to doubles.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "cells.h"
#include "copies.h"
#include "holes.h"
#include "kernels.h"
#include "pairs.h"
#include "parallel.h"
#include "processor.h"

namespace nb = nanobind;
using namespace robustbn;

namespace robustbn {
extern const Kernels kernels_portable;
#ifdef ROBUSTBN_X86_64
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif
}  // namespace robustbn

namespace {

// ---- which kernels ------------------------------------------------------------------------------

std::vector<const Kernels*> find_kernels() {
    std::vector<const Kernels*> found{&kernels_portable};
#ifdef ROBUSTBN_X86_64
    if (has_avx2()) found.push_back(&kernels_avx2);
    if (has_avx512()) found.push_back(&kernels_avx512);
#endif
    return found;
}

const std::vector<const Kernels*> available = find_kernels();
std::atomic<const Kernels*> kernels{available.back()};

std::vector<std::string> isas() {
    std::vector<std::string> names;
    for (const Kernels* k : available) names.emplace_back(k->name);
    return names;
}

void use_isa(const std::string& name) {
    for (const Kernels* k : available)
        if (name == k->name) {
            kernels = k;
            return;
        }
    throw std::invalid_argument("this machine has no instruction set '" + name + "'");
}

const ColumnKernels<uint8_t>& kernels_for(const Kernels& k, uint8_t) { return k.bytes; }
const ColumnKernels<uint16_t>& kernels_for(const Kernels& k, uint16_t) { return k.words; }

// ---- threads and memory -------------------------------------------------------------------------

constexpr std::align_val_t LINE{64};  // bytes of a cache line

struct Free {
    void operator()(void* p) const { ::operator delete(p, LINE); }
};

// Zeroed memory on a cache line; throws std::bad_alloc, which Python sees as MemoryError.
template <class T>
std::unique_ptr<T[], Free> zeros(size_t n) {
    const size_t bytes = (n * sizeof(T) + 63) / 64 * 64 + 64;
    void* p = ::operator new(bytes, LINE);
    std::memset(p, 0, bytes);
    return std::unique_ptr<T[], Free>(static_cast<T*>(p));
}

// ---- the plan -----------------------------------------------------------------------------------

using Ints = std::vector<int32_t>;

// How columns are fused into group codes, and which cell each code touches.
class Plan {
  public:
    // n_codes[j]: column j holds codes below it. columns[g], and for each node of the group the
    // cell of every joint state (-1: none), are given as nested lists once; everything after that is
    // flat. Groups of no node come last. folds[g] has the code of each joint state, or nothing; a
    // blanked group has one code more than the joint states of its `cards`.
    Plan(Ints n_codes, Ints cards, std::vector<Ints> columns, std::vector<int> widths,
         std::vector<nb::ndarray<const uint16_t, nb::ndim<1>, nb::c_contig>> folds,
         std::vector<bool> is_blanked,
         std::vector<std::vector<nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig>>> cells,
         int64_t n_cells)
        : n_codes_(std::move(n_codes)), columns_(std::move(columns)), n_cells_(n_cells) {
        if (columns_.size() != widths.size() || columns_.size() != cells.size() ||
            columns_.size() != folds.size() || columns_.size() != is_blanked.size() || n_codes_.size() != cards.size())
            throw std::invalid_argument("columns, widths and cells must have one entry a group");
        if (columns_.empty() || n_cells_ < 0) throw std::invalid_argument("a plan needs a group");
        for (size_t j = 0; j < cards.size(); ++j)
            if (cards[j] < 1 || n_codes_[j] < cards[j] || n_codes_[j] > MOST_CODES)
                throw std::invalid_argument("a column has 1 to 65536 codes, of which most are states");
        size_t offset = 0, first_entry = 0, n_touching = 0;
        for (size_t g = 0; g < columns_.size(); ++g) {
            Ints group_cards;
            size_t n_entries = 1;
            for (int32_t c : columns_[g]) {
                if (c < 0 || size_t(c) >= cards.size()) throw std::invalid_argument("no such column");
                group_cards.push_back(is_blanked[g] ? cards[c] : n_codes_[c]);
                n_entries *= size_t(group_cards.back());
                if (n_entries > MOST_ENTRIES) throw std::invalid_argument("too many joint states");
            }
            n_entries += is_blanked[g];
            require_aligned(folds[g]);
            folds_.emplace_back(folds[g].data(), folds[g].data() + folds[g].shape(0));
            if (!folds_[g].empty()) {
                if (folds_[g].size() != n_entries || n_entries > 65536)
                    throw std::invalid_argument("one code a joint state, of which there are 65536");
                n_entries = size_t(*std::max_element(folds_[g].begin(), folds_[g].end())) + 1;
            }
            if (widths[g] != 1 && widths[g] != 2 && widths[g] != 4)
                throw std::invalid_argument("a code has 1, 2 or 4 bytes");
            if (columns_[g].empty() || n_entries > size_t(1) << std::min(8 * widths[g], 31) ||
                (cells[g].empty() && n_entries > MOST_CODES))
                throw std::invalid_argument("a group's codes do not fit its width");
            group_cards_.push_back(std::move(group_cards));
            groups_.push_back({widths[g], int(columns_[g].size()), nullptr, nullptr, offset,
                               first_entry, n_entries, nullptr, is_blanked[g]});
            offset += size_t(BLOCK) * widths[g];
            if (cells[g].empty()) continue;
            if (n_touching != g) throw std::invalid_argument("groups of no node come last");
            ++n_touching;
            for (const auto& map : cells[g]) add_segment(first_entry, n_entries, map);
            first_entry += n_entries;
        }
        for (size_t g = 0; g < groups_.size(); ++g) {
            groups_[g].columns = columns_[g].data();
            groups_[g].cards = group_cards_[g].data();
            groups_[g].fold = folds_[g].empty() ? nullptr : folds_[g].data();
        }
        view_ = {groups_.data(), int(n_touching), int(groups_.size()), offset, first_entry};
    }
    Plan(const Plan&) = delete;

    const Groups& groups() const { return view_; }
    const Ints& n_codes() const { return n_codes_; }
    size_t n_cells() const { return size_t(n_cells_); }
    size_t block_bytes() const { return view_.block_bytes; }
    size_t n_entries() const { return view_.n_entries; }

    // expanded[code] = sum over the nodes of the group of table[cell]: columns from `first` on, after
    // some that are left at zero, padded to `width`.
    std::unique_ptr<float[], Free> expand(const double* table, size_t n_columns, size_t first,
                                          int width, size_t n_zero = 0) const {
        auto expanded = zeros<float>(view_.n_entries * width);
        auto sums = std::vector<double>(size_t(width));
        const size_t used = std::min(size_t(width) - n_zero, n_columns - first);
        for (size_t s = 0; s < segments_.size();) {
            size_t last = s + 1;
            while (last < segments_.size() && segments_[last].first_entry == segments_[s].first_entry)
                ++last;
            const size_t n = segments_[s].cells.size();
            for (size_t e = 0; e < n; ++e) {
                std::fill(sums.begin(), sums.end(), 0.0);
                for (size_t t = s; t < last; ++t) {
                    const int32_t cell = segments_[t].cells[e];
                    if (cell < 0) continue;
                    const double* line = table + size_t(cell) * n_columns + first;
                    for (size_t c = 0; c < used; ++c) sums[c] += line[c];
                }
                float* out = expanded.get() + (segments_[s].first_entry + e) * width + n_zero;
                for (size_t c = 0; c < used; ++c) out[c] = float(sums[c]);
            }
            s = last;
        }
        return expanded;
    }

    // table[cell] += collapsed[code] for every node of every group.
    void collapse(const double* entries, int width, double* table, size_t n_columns,
                  size_t first) const {
        const size_t used = std::min(size_t(width), n_columns - first);
        for (const auto& segment : segments_)
            for (size_t e = 0; e < segment.cells.size(); ++e) {
                if (segment.cells[e] < 0) continue;
                const double* in = entries + (segment.first_entry + e) * width;
                double* line = table + size_t(segment.cells[e]) * n_columns + first;
                for (size_t c = 0; c < used; ++c) line[c] += in[c];
            }
    }

    // hash_tables()[g][code]: sum over the columns that group g is the first to tell apart of a random
    // number for the column and its code. The sum over groups is then a function of the columns'
    // codes alone, however they are fused. Made when first asked for.
    const uint64_t* const* hash_tables() const {
        std::call_once(hashed_, [this] { make_hash_tables(); });
        return hash_table_of_.data();
    }

    // Whoever hands over rows: they are blocks of this plan, and lie where codes of its widths may.
    void require_blocks(const uint8_t* packed, size_t n_bytes, size_t n_rows) const {
        const size_t n_blocks = n_rows / BLOCK + (n_rows % BLOCK != 0);
        if (n_bytes % view_.block_bytes || n_bytes / view_.block_bytes != n_blocks)
            throw std::invalid_argument("packed has the wrong size");
        if (n_bytes && reinterpret_cast<uintptr_t>(packed) % sizeof(uint32_t))
            throw std::invalid_argument("packed is not aligned");
    }

    // Codes that no table has an entry for would be looked up elsewhere in memory.
    void require_codes(const Kernels& k, const uint8_t* blocks, size_t n_blocks, int n_groups) const {
        for (size_t b = 0; b < n_blocks; ++b)
            if (!k.has_codes(blocks + b * view_.block_bytes, view_, n_groups))
                throw std::invalid_argument("a packed code is out of range");
    }

  private:
    static constexpr int32_t MOST_CODES = 65536;
    static constexpr size_t MOST_ENTRIES = size_t(1) << 31;

    void make_hash_tables() const {
        std::vector<bool> is_told(n_codes_.size(), false);
        hash_table_of_.assign(groups_.size(), nullptr);
        for (size_t g = 0; g < groups_.size(); ++g) {
            const Group& group = groups_[g];
            size_t stride = group.n_entries;
            for (int k = 0; k < group.n_columns && !group.fold && !group.is_blanked; ++k) {
                const int32_t c = group.columns[k];
                stride /= size_t(group.cards[k]);
                if (is_told[c]) continue;
                is_told[c] = true;
                if (!hash_table_of_[g]) {
                    hash_tables_.push_back(zeros<uint64_t>(group.n_entries));
                    hash_table_of_[g] = hash_tables_.back().get();
                }
                uint64_t* table = hash_tables_.back().get();
                for (size_t e = 0; e < group.n_entries; ++e)
                    table[e] += hash_code(c, e / stride % size_t(group.cards[k]));
            }
        }
    }

    static uint64_t hash_code(int32_t column, size_t code) {
        return mix((uint64_t(column) * 65536 + code + 1) * GOLDEN);
    }

    struct Segment {
        size_t first_entry;
        Ints cells;
    };
    void add_segment(size_t first_entry, size_t n_entries,
                     const nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig>& map) {
        if (map.shape(0) != n_entries) throw std::invalid_argument("one cell a joint state");
        require_aligned(map);
        for (size_t e = 0; e < n_entries; ++e)
            if (map.data()[e] < -1 || map.data()[e] >= n_cells_)
                throw std::invalid_argument("no such cell");
        segments_.push_back({first_entry, Ints(map.data(), map.data() + n_entries)});
    }

    Ints n_codes_;
    std::vector<Ints> columns_, group_cards_;
    std::vector<std::vector<uint16_t>> folds_;
    std::vector<Group> groups_;
    std::vector<Segment> segments_;
    Groups view_{};
    mutable std::once_flag hashed_;
    mutable std::vector<std::unique_ptr<uint64_t[], Free>> hash_tables_;
    mutable std::vector<const uint64_t*> hash_table_of_;
    int64_t n_cells_;
};

// ---- arrays as they come from Python ------------------------------------------------------------

template <class Code>
using Codes = nb::ndarray<const Code, nb::ndim<2>, nb::device::cpu>;
template <class Code>
using CodesOut = nb::ndarray<Code, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Packed = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using PackedOut = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using TableOut = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Offset = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Weights = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatLines = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

size_t blocks_of(size_t n_rows) { return n_rows / BLOCK + (n_rows % BLOCK != 0); }

int width_for(size_t n_columns) { return n_columns <= 4 ? 4 : n_columns <= 8 ? 8 : 16; }

std::vector<float> offset_for(const Offset& offset, size_t first, int width) {
    std::vector<float> padded(size_t(width), 0.0f);
    for (size_t c = 0; c < size_t(width) && first + c < offset.shape(0); ++c)
        padded[c] = float(offset.data()[first + c]);
    return padded;
}

// Row weights of either precision, or none.
struct RowWeights {
    const float* single = nullptr;
    const double* full = nullptr;

    RowWeights(const std::optional<Weights>& weights, size_t n_rows) {
        if (!weights) return;
        require(weights->shape(0) == n_rows, "one weight a row");
        if (weights->dtype() == nb::dtype<float>()) single = static_cast<const float*>(weights->data());
        else if (weights->dtype() == nb::dtype<double>()) full = static_cast<const double*>(weights->data());
        else throw std::invalid_argument("weights must be float32 or float64");
    }

    // The weights of some rows as floats, in `buffer` where they are not held so.
    const float* floats(size_t row, int n_rows, float* buffer) const {
        if (single) return single + row;
        for (int i = 0; i < n_rows; ++i) buffer[i] = full ? float(full[row + size_t(i)]) : 1.0f;
        return buffer;
    }
};

// A lane is a range of blocks summed by one thread. Their number depends on the rows and the size of
// a lane's table, never on the threads.
constexpr size_t LANE_ROWS = 32768, MAX_LANES = 64, LANE_BYTES = size_t(256) << 20;

size_t lanes_of(size_t n_rows, size_t table_bytes) {
    size_t wanted = std::clamp(n_rows / LANE_ROWS, size_t(1), MAX_LANES);
    if (wanted > 1) wanted = (wanted + 3) / 4 * 4;  // two or four threads have as much to do
    return std::clamp(LANE_BYTES / std::max(table_bytes, size_t(1)), size_t(1), wanted);
}

// ---- the primitives -----------------------------------------------------------------------------

// Returns the first (row, column) whose code is out of range, or (-1, -1).
template <class Code>
std::tuple<int64_t, int64_t> encode(const Plan& plan, Codes<Code> codes, PackedOut packed,
                                    int n_threads) {
    const size_t n_rows = codes.shape(0), d = codes.shape(1);
    require(d == plan.n_codes().size(), "one column a node");
    require_aligned(codes);
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    const Code* data = codes.data();
    const ptrdiff_t row_stride = codes.stride(0), column_stride = codes.stride(1);
    uint8_t* out = packed.data();
    const ColumnKernels<Code>& k = kernels_for(*kernels.load(), Code());
    const size_t n_blocks = blocks_of(n_rows), chunk = 64;
    const size_t n_chunks = (n_blocks + chunk - 1) / chunk;
    std::vector<int64_t> wrong(n_chunks, -1);

    nb::gil_scoped_release release;
    run_parallel(n_chunks, n_threads, [&](size_t task) {
        auto columns = zeros<Code>(d * BLOCK);
        std::vector<Code> maxima(d);
        for (size_t b = task * chunk; b < std::min((task + 1) * chunk, n_blocks); ++b) {
            const size_t first = b * BLOCK;
            const int n = int(std::min(size_t(BLOCK), n_rows - first));
            k.load_columns(data + ptrdiff_t(first) * row_stride, row_stride, column_stride, n, int(d),
                           columns.get());
            k.column_maxima(columns.get(), int(d), maxima.data());
            for (size_t j = 0; j < d; ++j)
                if (maxima[j] >= plan.n_codes()[j]) {
                    wrong[task] = int64_t(first);
                    return;
                }
            k.pack_block(columns.get(), plan.groups(), out + b * plan.block_bytes());
        }
    });
    for (int64_t first : wrong)
        if (first >= 0)
            for (size_t r = size_t(first); r < n_rows; ++r)
                for (size_t j = 0; j < d; ++j)
                    if (data[ptrdiff_t(r) * row_stride + ptrdiff_t(j) * column_stride] >= plan.n_codes()[j])
                        return {int64_t(r), int64_t(j)};
    return {-1, -1};
}

void count(const Plan& plan, Packed packed, size_t n_rows, std::optional<Weights> weights,
           nb::ndarray<double, nb::ndim<1>, nb::c_contig> out, int n_threads) {
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(out.shape(0) == plan.n_cells(), "one count a cell");
    require_aligned(weights, out);
    const RowWeights w(weights, n_rows);
    const Kernels& k = *kernels.load();
    const size_t n = plan.n_entries(), n_blocks = blocks_of(n_rows);
    const bool weighted = w.single || w.full;
    const uint8_t* data = packed.data();
    double* counts = out.data();

    nb::gil_scoped_release release;
    const size_t n_lanes = lanes_of(n_rows, n * sizeof(double));
    auto lanes = zeros<double>(n_lanes * n);
    run_parallel(n_lanes, n_threads, [&](size_t lane) {
        auto histogram = zeros<double>(weighted ? n * WAYS : 0);
        auto integers = zeros<uint32_t>(weighted ? 0 : n * WAYS);
        const size_t begin = lane * n_blocks / n_lanes, end = (lane + 1) * n_blocks / n_lanes;
        constexpr size_t step = 16;  // blocks: their codes stay in the second-level cache
        for (size_t b = begin; b < end; b += step) {
            const size_t first = b * BLOCK;
            const size_t rows = std::min(std::min(b + step, end) * BLOCK, n_rows) - first;
            const uint8_t* blocks = data + b * plan.block_bytes();
            plan.require_codes(k, blocks, blocks_of(rows), plan.groups().n);
            if (w.full)
                k.count_blocks_weighted(blocks, plan.groups(), rows, w.full + first, histogram.get());
            else if (w.single)
                k.count_blocks_weighted_float(blocks, plan.groups(), rows, w.single + first,
                                              histogram.get());
            else
                k.count_blocks(blocks, plan.groups(), rows, integers.get());
        }
        double* sums = lanes.get() + lane * n;
        for (size_t e = 0; e < n; ++e)
            for (int way = 0; way < WAYS; ++way)
                sums[e] += weighted ? histogram[e * WAYS + way] : double(integers[e * WAYS + way]);
    });
    for (size_t lane = 1; lane < n_lanes; ++lane)
        for (size_t e = 0; e < n; ++e) lanes[e] += lanes[lane * n + e];
    std::fill(counts, counts + plan.n_cells(), 0.0);
    plan.collapse(lanes.get(), 1, counts, 1, 0);
}

// Runs visit(block, first row, rows, y) with y = projections of the block, over all blocks.
template <class Visit>
void project_blocks(const Plan& plan, const uint8_t* data, size_t n_rows, const float* table,
                    const float* offset, int width, int n_threads, const Visit& visit) {
    const Kernels& k = *kernels.load();
    const size_t n_blocks = blocks_of(n_rows), chunk = 32;
    run_parallel((n_blocks + chunk - 1) / chunk, n_threads, [&](size_t task) {
        alignas(64) float y[BLOCK * 16];
        for (size_t b = task * chunk; b < std::min((task + 1) * chunk, n_blocks); ++b) {
            const size_t first = b * BLOCK;
            const int n = int(std::min(size_t(BLOCK), n_rows - first));
            plan.require_codes(k, data + b * plan.block_bytes(), 1, plan.groups().n);
            k.project_block(width, data + b * plan.block_bytes(), plan.groups(), table, offset, n, y);
            visit(k, first, n, y);
        }
    });
}

void project(const Plan& plan, Packed packed, size_t n_rows, Table table, Offset offset,
             FloatLines out, int n_threads) {
    const size_t r = table.shape(1);
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(table.shape(0) == plan.n_cells(), "one line a cell");
    require(offset.shape(0) == r && out.shape(0) == n_rows && out.shape(1) == r, "shapes differ");
    require_aligned(table, offset, out);
    const uint8_t* data = packed.data();
    float* lines = out.data();
    nb::gil_scoped_release release;
    for (size_t first = 0; first < r; first += 16) {
        const int width = width_for(r - first);
        const size_t used = std::min(size_t(width), r - first);
        const auto expanded = plan.expand(table.data(), r, first, width);
        const auto shift = offset_for(offset, first, width);
        project_blocks(plan, data, n_rows, expanded.get(), shift.data(), width, n_threads,
                       [&](const Kernels&, size_t row, int n, const float* y) {
                           for (int i = 0; i < n; ++i)
                               std::memcpy(lines + (row + size_t(i)) * r + first, y + i * width,
                                           used * sizeof(float));
                       });
    }
}

void score(const Plan& plan, Packed packed, size_t n_rows, Table table, Offset offset, Floats out,
           int n_threads) {
    const size_t r = table.shape(1);
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(table.shape(0) == plan.n_cells(), "one line a cell");
    require(offset.shape(0) == r && out.shape(0) == n_rows, "shapes differ");
    require_aligned(table, offset, out);
    const uint8_t* data = packed.data();
    float* norms = out.data();
    nb::gil_scoped_release release;
    for (size_t first = 0; first < r; first += 16) {
        const int width = width_for(r - first);
        const auto expanded = plan.expand(table.data(), r, first, width);
        const auto shift = offset_for(offset, first, width);
        project_blocks(plan, data, n_rows, expanded.get(), shift.data(), width, n_threads,
                       [&](const Kernels& k, size_t row, int n, const float* y) {
                           if (first == 0) {
                               k.square_norms(width, y, n, norms + row);
                           } else {
                               float more[BLOCK];
                               k.square_norms(width, y, n, more);
                               for (int i = 0; i < n; ++i) norms[row + size_t(i)] += more[i];
                           }
                       });
    }
}

// Floats are summed for at most this many rows before they go into doubles: the relative error of
// a sum is below FLUSH_ROWS * 2^-24 in the worst case and about sqrt(FLUSH_ROWS) * 2^-24 in
// practice, however many rows there are.
constexpr size_t FLUSH_ROWS = 8192;

// Sums over the rows of each cell of vectors y that `fill(block, lane, first row, rows, y)` provides, a
// block of rows at a time, for `width` columns of which `columns` starts at `first`.
template <class Fill>
void sum_by_cell(const Plan& plan, const uint8_t* data, size_t n_rows, int width, double* sums,
                 size_t n_columns, size_t first, int n_threads, const Fill& fill) {
    const Kernels& k = *kernels.load();
    const size_t n_blocks = blocks_of(n_rows), n = plan.n_entries() * size_t(width);
    const size_t n_lanes = lanes_of(n_rows, n * sizeof(double));
    auto lanes = zeros<double>(n_lanes * n);
    run_parallel(n_lanes, n_threads, [&](size_t lane) {
        alignas(64) float y[BLOCK * 16];
        auto part = zeros<float>(n);
        double* total = lanes.get() + lane * n;
        const size_t begin = lane * n_blocks / n_lanes, end = (lane + 1) * n_blocks / n_lanes;
        for (size_t b = begin; b < end; ++b) {
            const size_t row = b * BLOCK;
            const int rows = int(std::min(size_t(BLOCK), n_rows - row));
            const uint8_t* block = data + b * plan.block_bytes();
            plan.require_codes(k, block, 1, plan.groups().n);
            fill(k, block, lane, row, rows, y);
            k.scatter_block(width, block, plan.groups(), y, rows, part.get());
            if ((b - begin + 1) % (FLUSH_ROWS / BLOCK) == 0 || b + 1 == end)
                k.flush(part.get(), total, n);
        }
    });
    for (size_t lane = 1; lane < n_lanes; ++lane)
        for (size_t e = 0; e < n; ++e) lanes[e] += lanes[lane * n + e];
    plan.collapse(lanes.get(), width, sums, n_columns, first);
}

void gram(const Plan& plan, Packed packed, size_t n_rows, Table table, Offset offset,
          std::optional<Weights> weights, TableOut out, int n_threads) {
    const size_t r = table.shape(1);
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(table.shape(0) == plan.n_cells(), "one line a cell");
    require(offset.shape(0) == r && out.shape(0) == plan.n_cells() && out.shape(1) == r,
            "shapes differ");
    require_aligned(table, offset, weights, out);
    const RowWeights w(weights, n_rows);
    const uint8_t* data = packed.data();
    double* sums = out.data();

    nb::gil_scoped_release release;
    std::fill(sums, sums + plan.n_cells() * r, 0.0);
    for (size_t first = 0; first < r; first += 16) {
        const int width = width_for(r - first);
        const auto expanded = plan.expand(table.data(), r, first, width);
        const auto shift = offset_for(offset, first, width);
        sum_by_cell(plan, data, n_rows, width, sums, r, first, n_threads,
                    [&](const Kernels& k, const uint8_t* block, size_t, size_t row, int rows, float* y) {
                        k.project_block(width, block, plan.groups(), expanded.get(), shift.data(),
                                        rows, y);
                        if (w.full) k.scale_rows(width, w.full + row, rows, y);
                        else if (w.single) k.scale_rows_float(width, w.single + row, rows, y);
                    });
    }
}

// A column of zeros, then those of a table: as kernels read them.
struct Columns {
    int width;
    std::unique_ptr<float[], Free> expanded;
    std::vector<float> shift;

    Columns(const Plan& plan, const Table& table, const Offset& offset)
        : width(width_for(table.shape(1) + 1)),
          expanded(plan.expand(table.data(), table.shape(1), 0, width, 1)),
          shift(size_t(width), 0.0f) {
        for (size_t c = 0; c < table.shape(1); ++c) shift[c + 1] = float(offset.data()[c]);
    }
};

// Divides the weight of each row among 1 + r columns by softmax(0, y[n]), and counts each column:
// counts[j] = sum of the weights over the rows that touch cell j. masses = sums of each column over
// all rows; then the sum of weights[n] log(1 + sum of exp y[n]).
void divide(const Plan& plan, Packed packed, size_t n_rows, Table table, Offset offset,
            std::optional<Weights> weights, TableOut out,
            nb::ndarray<double, nb::ndim<1>, nb::c_contig> masses, int n_threads) {
    const size_t r = table.shape(1), n_columns = r + 1;
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(n_columns <= 16, "at most 15 columns");
    require(table.shape(0) == plan.n_cells(), "one line a cell");
    require(offset.shape(0) == r && out.shape(0) == plan.n_cells() && out.shape(1) == n_columns &&
                masses.shape(0) == n_columns + 1,
            "shapes differ");
    require_aligned(table, offset, weights, out, masses);
    const RowWeights w(weights, n_rows);
    const uint8_t* data = packed.data();

    nb::gil_scoped_release release;
    std::fill(out.data(), out.data() + plan.n_cells() * n_columns, 0.0);
    const Columns columns(plan, table, offset);
    const int width = columns.width;
    constexpr size_t per_lane = 24;  // no two lanes on one cache line
    const size_t n_lanes = lanes_of(n_rows, plan.n_entries() * size_t(width) * sizeof(double));
    auto sums = zeros<double>(n_lanes * per_lane);
    sum_by_cell(plan, data, n_rows, width, out.data(), n_columns, 0, n_threads,
                [&](const Kernels& k, const uint8_t* block, size_t lane, size_t row, int rows,
                    float* y) {
                    alignas(64) float logs[BLOCK], given[BLOCK];
                    double* sum = sums.get() + lane * per_lane;
                    k.project_block(width, block, plan.groups(), columns.expanded.get(),
                                    columns.shift.data(), rows, y);
                    k.divide_rows(width, int(n_columns), w.floats(row, rows, given), rows, y, logs, sum);
                    for (int i = 0; i < rows; ++i)
                        sum[16] += double(logs[i]) * (w.single ? double(w.single[row + size_t(i)])
                                                     : w.full  ? w.full[row + size_t(i)]
                                                               : 1.0);
                });
    std::fill(masses.data(), masses.data() + n_columns + 1, 0.0);
    for (size_t lane = 0; lane < n_lanes; ++lane) {
        for (size_t c = 0; c < n_columns; ++c) masses.data()[c] += sums[lane * per_lane + c];
        masses.data()[n_columns] += sums[lane * per_lane + 16];
    }
}

// Divides the weight of each row, in each of r columns on its own, by 1 / (1 + exp(against[n] - y[n]))
// and counts that: counts[j] = sum over the rows that touch cell j. sums[0] = the same over all rows;
// sums[1] = the sum of weights[n] log(1 + exp(y[n] - against[n])).
void divide_apart(const Plan& plan, Packed packed, size_t n_rows, Table table, Offset offset,
                  nb::ndarray<const float, nb::ndim<1>, nb::c_contig> against,
                  std::optional<Weights> weights, TableOut out, TableOut sums, int n_threads) {
    const size_t r = table.shape(1);
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(table.shape(0) == plan.n_cells(), "one line a cell");
    require(offset.shape(0) == r && out.shape(0) == plan.n_cells() && out.shape(1) == r &&
                sums.shape(0) == 2 && sums.shape(1) == r && against.shape(0) == n_rows,
            "shapes differ");
    require_aligned(table, offset, against, weights, out, sums);
    const RowWeights w(weights, n_rows);
    const uint8_t* data = packed.data();
    const float* minus = against.data();

    nb::gil_scoped_release release;
    std::fill(out.data(), out.data() + plan.n_cells() * r, 0.0);
    std::fill(sums.data(), sums.data() + 2 * r, 0.0);
    for (size_t first = 0; first < r; first += 16) {
        const int width = width_for(r - first), used = int(std::min(size_t(16), r - first));
        const auto expanded = plan.expand(table.data(), r, first, width);
        const auto shift = offset_for(offset, first, width);
        constexpr size_t per_lane = 32;
        const size_t n_lanes = lanes_of(n_rows, plan.n_entries() * size_t(width) * sizeof(double));
        auto lane_sums = zeros<double>(n_lanes * per_lane);
        sum_by_cell(plan, data, n_rows, width, out.data(), r, first, n_threads,
                    [&](const Kernels& k, const uint8_t* block, size_t lane, size_t row, int rows,
                        float* y) {
                        double* sum = lane_sums.get() + lane * per_lane;
                        k.project_block(width, block, plan.groups(), expanded.get(), shift.data(),
                                        rows, y);
                        alignas(64) float given[BLOCK];
                        k.divide_rows_apart(width, used, w.floats(row, rows, given), minus + row, rows,
                                            y, sum, sum + 16);
                    });
        for (size_t lane = 0; lane < n_lanes; ++lane)
            for (size_t c = 0; c < size_t(used); ++c) {
                sums.data()[first + c] += lane_sums[lane * per_lane + c];
                sums.data()[r + first + c] += lane_sums[lane * per_lane + 16 + c];
            }
    }
}

// Columns 0, y[n]; those up to `n_first` of y are one side, the others the other one. out[n] = log of
// the sum of exp over the second side, less that over the first.
void odds(const Plan& plan, Packed packed, size_t n_rows, Table table, Offset offset, size_t n_first,
          Floats out, int n_threads) {
    const size_t r = table.shape(1);
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(r < 16 && n_first < r, "at most 15 columns, of which some are on the second side");
    require(table.shape(0) == plan.n_cells(), "one line a cell");
    require(offset.shape(0) == r && out.shape(0) == n_rows, "shapes differ");
    require_aligned(table, offset, out);
    const uint8_t* data = packed.data();
    float* found = out.data();
    nb::gil_scoped_release release;
    const Columns columns(plan, table, offset);
    project_blocks(plan, data, n_rows, columns.expanded.get(), columns.shift.data(), columns.width,
                   n_threads, [&](const Kernels& k, size_t row, int n, float* y) {
                       k.divide_rows_in_two(columns.width, int(n_first) + 1, int(r) + 1, 0.0f, 1.0f,
                                            nullptr, n, y, found + row, nullptr);
                   });
}

// Divides the weight of each row between the two sides of `odds`, by 1 / (1 + exp(-intercept - slope
// odds)) for the second, and on each side by softmax; and counts each of the 1 + r columns. masses =
// sums of each over all rows. found = the odds.
void divide_in_two(const Plan& plan, Packed packed, size_t n_rows, Table table, Offset offset,
                   size_t n_first, double intercept, double slope, std::optional<Weights> weights,
                   TableOut out, nb::ndarray<double, nb::ndim<1>, nb::c_contig> masses, Floats found,
                   int n_threads) {
    const size_t r = table.shape(1), n_columns = r + 1;
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(r < 16 && n_first < r, "at most 15 columns, of which some are on the second side");
    require(table.shape(0) == plan.n_cells(), "one line a cell");
    require(offset.shape(0) == r && out.shape(0) == plan.n_cells() && out.shape(1) == n_columns &&
                masses.shape(0) == n_columns && found.shape(0) == n_rows,
            "shapes differ");
    require_aligned(table, offset, weights, out, masses, found);
    const RowWeights w(weights, n_rows);
    const uint8_t* data = packed.data();
    float* odds = found.data();

    nb::gil_scoped_release release;
    std::fill(out.data(), out.data() + plan.n_cells() * n_columns, 0.0);
    const Columns columns(plan, table, offset);
    constexpr size_t per_lane = 24;
    const size_t line = size_t(columns.width) * sizeof(double);
    const size_t n_lanes = lanes_of(n_rows, plan.n_entries() * line);
    auto sums = zeros<double>(n_lanes * per_lane);
    sum_by_cell(plan, data, n_rows, columns.width, out.data(), n_columns, 0, n_threads,
                [&](const Kernels& k, const uint8_t* block, size_t lane, size_t row, int rows,
                    float* y) {
                    alignas(64) float given[BLOCK];
                    k.project_block(columns.width, block, plan.groups(), columns.expanded.get(),
                                    columns.shift.data(), rows, y);
                    k.divide_rows_in_two(columns.width, int(n_first) + 1, int(n_columns),
                                         float(intercept), float(slope), w.floats(row, rows, given),
                                         rows, y, odds + row, sums.get() + lane * per_lane);
                });
    std::fill(masses.data(), masses.data() + n_columns, 0.0);
    for (size_t lane = 0; lane < n_lanes; ++lane)
        for (size_t c = 0; c < n_columns; ++c) masses.data()[c] += sums[lane * per_lane + c];
}

// counts[j] = sum of weights[n] over the rows that touch cell j, for several columns of weights.
void count_columns(const Plan& plan, Packed packed, size_t n_rows,
                   nb::ndarray<const float, nb::ndim<2>, nb::c_contig> weights, TableOut out,
                   int n_threads) {
    const size_t r = weights.shape(1);
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(weights.shape(0) == n_rows, "one line of weights a row");
    require(out.shape(0) == plan.n_cells() && out.shape(1) == r, "shapes differ");
    require_aligned(weights, out);
    const uint8_t* data = packed.data();
    const float* lines = weights.data();
    double* sums = out.data();

    nb::gil_scoped_release release;
    std::fill(sums, sums + plan.n_cells() * r, 0.0);
    for (size_t first = 0; first < r; first += 16) {
        const int width = width_for(r - first);
        const size_t used = std::min(size_t(width), r - first);
        sum_by_cell(plan, data, n_rows, width, sums, r, first, n_threads,
                    [&](const Kernels&, const uint8_t*, size_t, size_t row, int rows, float* y) {
                        if (used < size_t(width)) std::memset(y, 0, sizeof(float) * size_t(rows * width));
                        for (int i = 0; i < rows; ++i)
                            std::memcpy(y + i * width, lines + (row + size_t(i)) * r + first,
                                        used * sizeof(float));
                    });
    }
}

void fingerprints(const Plan& plan, Packed packed, size_t n_rows,
                  nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig> out, int n_threads) {
    plan.require_blocks(packed.data(), packed.shape(0), n_rows);
    require(out.shape(0) == n_rows, "one fingerprint a row");
    require_aligned(out);
    const uint8_t* data = packed.data();
    uint64_t* hashes = out.data();
    const Kernels& k = *kernels.load();
    const size_t n_blocks = blocks_of(n_rows), chunk = 64;
    nb::gil_scoped_release release;
    const uint64_t* const* tables = plan.hash_tables();
    run_parallel((n_blocks + chunk - 1) / chunk, n_threads, [&](size_t task) {
        alignas(64) uint64_t block[BLOCK];
        for (size_t b = task * chunk; b < std::min((task + 1) * chunk, n_blocks); ++b) {
            plan.require_codes(k, data + b * plan.block_bytes(), 1, plan.groups().n_packed);
            k.hash_block(data + b * plan.block_bytes(), plan.groups(), tables, block);
            std::memcpy(hashes + b * BLOCK, block,
                        std::min(size_t(BLOCK), n_rows - b * BLOCK) * sizeof(uint64_t));
        }
    });
}

// `thresholds[i]`: (configurations, card - 1) of node `order[i]`, cumulative probability * 2^30.
template <class Code>
void sample(const Ints& cards, const Ints& order, const std::vector<Ints>& parents,
            std::vector<nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig>> thresholds,
            uint64_t key, CodesOut<Code> out, int n_threads) {
    const size_t n_rows = out.shape(0), d = cards.size();
    require(out.shape(1) == d && order.size() == d && parents.size() == d && thresholds.size() == d,
            "one entry a node");
    require_aligned(out);
    for (int32_t card : cards)
        require(card >= 1 && card - 1 <= std::numeric_limits<Code>::max(), "states must fit a code");
    std::vector<SampledNode> nodes;
    std::vector<Ints> parent_cards(d);
    std::vector<bool> is_drawn(d, false);
    for (size_t i = 0; i < d; ++i) {
        const int32_t column = order[i];
        require(column >= 0 && size_t(column) < d && !is_drawn[column], "no such column");
        size_t n_configurations = 1;
        for (int32_t p : parents[i]) {
            require(p >= 0 && size_t(p) < d && is_drawn[p], "parents are drawn before");
            parent_cards[i].push_back(cards[p]);
            n_configurations *= size_t(cards[p]);
            require(n_configurations <= size_t(std::numeric_limits<int32_t>::max()),
                    "too many configurations");
        }
        is_drawn[column] = true;
        require(thresholds[i].shape(0) == n_configurations &&
                    thresholds[i].shape(1) + 1 == size_t(cards[column]),
                "thresholds have the wrong shape");
        require_aligned(thresholds[i]);
        nodes.push_back({column, cards[column], int(parents[i].size()), parents[i].data(),
                         parent_cards[i].data(), thresholds[i].data()});
    }
    Code* codes = out.data();
    const ColumnKernels<Code>& k = kernels_for(*kernels.load(), Code());
    const size_t n_blocks = blocks_of(n_rows), chunk = 64;
    nb::gil_scoped_release release;
    run_parallel((n_blocks + chunk - 1) / chunk, n_threads, [&](size_t task) {
        auto columns = zeros<Code>(d * BLOCK);
        for (size_t b = task * chunk; b < std::min((task + 1) * chunk, n_blocks); ++b) {
            const size_t row = b * BLOCK;
            k.sample_block(nodes.data(), int(d), key, row, columns.get());
            k.store_columns(columns.get(), int(std::min(size_t(BLOCK), n_rows - row)), int(d),
                            codes + row * d);
        }
    });
}

}  // namespace

NB_MODULE(_native, m) {
    m.attr("BLOCK") = BLOCK;
    m.def("isas", &isas);
    m.def("use_isa", &use_isa);
    m.def("isa", [] { return std::string(kernels.load()->name); });
    nb::class_<Plan>(m, "Plan")
        .def(nb::init<Ints, Ints, std::vector<Ints>, std::vector<int>,
                      std::vector<nb::ndarray<const uint16_t, nb::ndim<1>, nb::c_contig>>,
                      std::vector<bool>,
                      std::vector<std::vector<nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig>>>,
                      int64_t>())
        .def_prop_ro("block_bytes", &Plan::block_bytes)
        .def_prop_ro("n_entries", &Plan::n_entries);
    // Without conversion: what is written into the copy of an argument would be lost.
    const auto as_is = nb::arg().noconvert();
    const auto as_is_or_none = nb::arg().noconvert().none();
    m.def("encode", &encode<uint8_t>, nb::arg(), as_is, as_is, nb::arg());
    m.def("encode", &encode<uint16_t>, nb::arg(), as_is, as_is, nb::arg());
    m.def("count", &count, nb::arg(), as_is, nb::arg(), as_is_or_none, as_is, nb::arg());
    m.def("project", &project, nb::arg(), as_is, nb::arg(), as_is, as_is, as_is, nb::arg());
    m.def("score", &score, nb::arg(), as_is, nb::arg(), as_is, as_is, as_is, nb::arg());
    m.def("gram", &gram, nb::arg(), as_is, nb::arg(), as_is, as_is, as_is_or_none, as_is, nb::arg());
    m.def("divide", &divide, nb::arg(), as_is, nb::arg(), as_is, as_is, as_is_or_none, as_is, as_is,
          nb::arg());
    m.def("divide_apart", &divide_apart, nb::arg(), as_is, nb::arg(), as_is, as_is, as_is,
          as_is_or_none, as_is, as_is, nb::arg());
    m.def("odds", &odds, nb::arg(), as_is, nb::arg(), as_is, as_is, nb::arg(), as_is, nb::arg());
    m.def("divide_in_two", &divide_in_two, nb::arg(), as_is, nb::arg(), as_is, as_is, nb::arg(),
          nb::arg(), nb::arg(), as_is_or_none, as_is, as_is, as_is, nb::arg());
    m.def("count_columns", &count_columns, nb::arg(), as_is, nb::arg(), as_is, as_is, nb::arg());
    m.def("fingerprints", &fingerprints, nb::arg(), as_is, nb::arg(), as_is, nb::arg());
    m.def("sample", &sample<uint8_t>, nb::arg(), nb::arg(), nb::arg(), as_is, nb::arg(), as_is,
          nb::arg());
    m.def("sample", &sample<uint16_t>, nb::arg(), nb::arg(), nb::arg(), as_is, nb::arg(), as_is,
          nb::arg());
    bind_holes(m);
    bind_pairs(m);
    bind_copies(m);
    bind_cells(m);
}
