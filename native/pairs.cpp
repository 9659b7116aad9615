// pairs[i][j] = sum of the weights of the rows that touch both cell i and cell j.
//
// A task is a group with all that follow, over all rows: no two tasks write to one entry, so results
// do not depend on the number of threads. Rows of weight zero are left out before anything else, which
// makes a change of few weights cheap. Where two groups have few codes together, codes are counted
// first and carried over to cells afterwards, one side at a time.
#include "pairs.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "arrays.h"
#include "kernels.h"
#include "parallel.h"

namespace nb = nanobind;

namespace robustbn {
namespace {

using Packed = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Weights = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using TableOut = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using CellMap = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr size_t MOST_JOINT_CODES = size_t(1) << 17;  // doubles of a task: about the second-level cache
constexpr size_t MOST_CELLS = size_t(1) << 15;        // 8 GiB of pairs

// The rows with a weight, block by block: which of the block they are, and what they weigh.
struct Active {
    std::vector<size_t> begin;  // of each block in the next two, and their size at the end
    std::vector<uint8_t> row;
    std::vector<double> weight;
};

// A group of nodes that share a code.
struct CodedNodes {
    int width;                                // bytes of a code
    size_t offset;                            // of its codes inside a block, in bytes
    size_t n_codes;
    std::vector<int32_t> cells;               // different ones that it touches
    std::vector<std::vector<int32_t>> place;  // for each node and code: where in `cells`, or -1
    std::vector<std::vector<int32_t>> codes;  // for each of `cells`: the codes that touch it
};

// What a task works in: taken from the system once, not for every pair of groups.
struct Room {
    std::vector<double> joint, half, turned, found;
};

// sums[i] = sum over k in lists[i] of lines[k], where a line has `width` numbers.
void sum_lines(const std::vector<std::vector<int32_t>>& lists, const double* lines, size_t width,
               double* sums) {
    constexpr size_t TILE = 16;  // numbers of a line that are summed in registers
    for (size_t i = 0; i < lists.size(); ++i) {
        double* sum = sums + i * width;
        size_t c = 0;
        for (; c + TILE <= width; c += TILE) {
            double tile[TILE] = {};
            for (int32_t k : lists[i])
                for (size_t t = 0; t < TILE; ++t) tile[t] += lines[size_t(k) * width + c + t];
            std::copy(tile, tile + TILE, sum + c);
        }
        for (; c < width; ++c) {
            sum[c] = 0;
            for (int32_t k : lists[i]) sum[c] += lines[size_t(k) * width + c];
        }
    }
}

class Pairs {
  public:
    // widths[g]: bytes of a code of group g, in the order in which a block holds them; cells[g]: for
    // each node of the group the cell of every code (-1: none); groups of no node may follow.
    Pairs(const std::vector<int>& widths, const std::vector<std::vector<CellMap>>& cells,
          int64_t n_cells)
        : n_cells_(size_t(n_cells)) {
        require(n_cells >= 0 && n_cells_ <= MOST_CELLS, "there are too many cells for all pairs");
        require(widths.size() == cells.size(), "widths and cells must have one entry a group");
        std::vector<int32_t> group_of(n_cells_, -1), place_of(n_cells_, -1);
        for (size_t g = 0; g < widths.size(); ++g) {
            require(widths[g] == 1 || widths[g] == 2 || widths[g] == 4, "a code has 1, 2 or 4 bytes");
            if (!cells[g].empty()) add_group(widths[g], cells[g], group_of, place_of);
            block_bytes_ += size_t(BLOCK) * size_t(widths[g]);
        }
    }

    void count(Packed packed, size_t n_rows, const std::optional<Weights>& weights, TableOut out,
               int n_threads) const {
        const size_t n_blocks = n_rows / BLOCK + (n_rows % BLOCK != 0);
        require(block_bytes_ ? packed.shape(0) % block_bytes_ == 0 &&
                                   packed.shape(0) / block_bytes_ == n_blocks
                             : !packed.shape(0),
                "packed has the wrong size");
        require(!packed.shape(0) || reinterpret_cast<uintptr_t>(packed.data()) % sizeof(uint32_t) == 0,
                "packed is not aligned");
        require(!weights || weights->shape(0) == n_rows, "one weight a row");
        require(out.shape(0) == n_cells_ && out.shape(1) == n_cells_, "one line and column a cell");
        require_aligned(weights, out);
        const uint8_t* data = packed.data();
        const double* w = weights ? weights->data() : nullptr;
        double* pairs = out.data();

        nb::gil_scoped_release release;
        std::fill(pairs, pairs + n_cells_ * n_cells_, 0.0);
        run_parallel(groups_.size(), n_threads,
                     [&](size_t g) { require_codes(groups_[g], data, n_blocks); });
        const Active active = find_active(w, n_rows, n_blocks);
        run_parallel(groups_.size(), n_threads, [&](size_t g) {
            Room room;
            for (size_t h = g; h < groups_.size(); ++h)
                count_groups(groups_[g], groups_[h], data, active, room, pairs);
        });
    }

  private:
    void add_group(int width, const std::vector<CellMap>& maps, std::vector<int32_t>& group_of,
                   std::vector<int32_t>& place_of) {
        CodedNodes group{width, block_bytes_, maps[0].shape(0), {}, {}, {}};
        const auto g = int32_t(groups_.size());
        for (const CellMap& map : maps) {
            require(map.shape(0) == group.n_codes, "one cell a code");
            require_aligned(map);
            std::vector<int32_t> place(group.n_codes, -1);
            for (size_t e = 0; e < group.n_codes; ++e) {
                const int32_t cell = map.data()[e];
                require(cell >= -1 && (cell < 0 || size_t(cell) < n_cells_), "no such cell");
                if (cell < 0) continue;
                if (group_of[cell] < 0) {
                    group_of[cell] = g;
                    place_of[cell] = int32_t(group.cells.size());
                    group.cells.push_back(cell);
                    group.codes.emplace_back();
                }
                require(group_of[cell] == g, "a cell belongs to one group");
                place[e] = place_of[cell];
                group.codes[place[e]].push_back(int32_t(e));
            }
            group.place.push_back(std::move(place));
        }
        groups_.push_back(std::move(group));
    }

    template <class Code>
    void require_codes_of(const CodedNodes& group, const uint8_t* data, size_t n_blocks) const {
        for (size_t b = 0; b < n_blocks; ++b) {
            const Code* codes = reinterpret_cast<const Code*>(data + b * block_bytes_ + group.offset);
            Code largest = 0;
            for (int r = 0; r < BLOCK; ++r) largest = std::max(largest, codes[r]);
            require(largest < group.n_codes, "a packed code is out of range");
        }
    }

    void require_codes(const CodedNodes& group, const uint8_t* data, size_t n_blocks) const {
        if (group.width == 1) require_codes_of<uint8_t>(group, data, n_blocks);
        else if (group.width == 2) require_codes_of<uint16_t>(group, data, n_blocks);
        else require_codes_of<uint32_t>(group, data, n_blocks);
    }

    static Active find_active(const double* weights, size_t n_rows, size_t n_blocks) {
        Active active;
        size_t n = n_rows;
        if (weights) n = size_t(std::count_if(weights, weights + n_rows, [](double w) { return w != 0; }));
        active.row.reserve(n);
        active.weight.reserve(n);
        active.begin.reserve(n_blocks + 1);
        for (size_t b = 0; b < n_blocks; ++b) {
            active.begin.push_back(active.row.size());
            const size_t end = std::min((b + 1) * BLOCK, n_rows);
            for (size_t r = b * BLOCK; r < end; ++r) {
                const double w = weights ? weights[r] : 1.0;
                if (w == 0) continue;
                active.row.push_back(uint8_t(r % BLOCK));
                active.weight.push_back(w);
            }
        }
        active.begin.push_back(active.row.size());
        return active;
    }

    // Calls add(code of g, code of h, weight) for every row.
    template <class First, class Second, class Add>
    void visit_codes(const CodedNodes& g, const CodedNodes& h, const uint8_t* data,
                     const Active& active, const Add& add) const {
        for (size_t b = 0; b + 1 < active.begin.size(); ++b) {
            const uint8_t* block = data + b * block_bytes_;
            const First* first = reinterpret_cast<const First*>(block + g.offset);
            const Second* second = reinterpret_cast<const Second*>(block + h.offset);
            for (size_t i = active.begin[b]; i < active.begin[b + 1]; ++i)
                add(first[active.row[i]], second[active.row[i]], active.weight[i]);
        }
    }

    template <class First, class Add>
    void visit_first(const CodedNodes& g, const CodedNodes& h, const uint8_t* data,
                     const Active& active, const Add& add) const {
        if (h.width == 1) visit_codes<First, uint8_t>(g, h, data, active, add);
        else if (h.width == 2) visit_codes<First, uint16_t>(g, h, data, active, add);
        else visit_codes<First, uint32_t>(g, h, data, active, add);
    }

    template <class Add>
    void visit_rows(const CodedNodes& g, const CodedNodes& h, const uint8_t* data,
                    const Active& active, const Add& add) const {
        if (g.width == 1) visit_first<uint8_t>(g, h, data, active, add);
        else if (g.width == 2) visit_first<uint16_t>(g, h, data, active, add);
        else visit_first<uint32_t>(g, h, data, active, add);
    }

    void count_groups(const CodedNodes& g, const CodedNodes& h, const uint8_t* data,
                      const Active& active, Room& room, double* pairs) const {
        const size_t n_first = g.cells.size(), n_codes = h.n_codes;
        room.found.assign(h.cells.size() * n_first, 0.0);
        double* found = room.found.data();  // a line a cell of h
        if (g.n_codes * n_codes <= MOST_JOINT_CODES) {
            room.joint.assign(g.n_codes * n_codes, 0.0);
            double* joint = room.joint.data();
            visit_rows(g, h, data, active, [=](size_t first, size_t second, double weight) {
                joint[first * n_codes + second] += weight;
            });
            carry_over(g, h, room);
        } else {
            visit_rows(g, h, data, active, [&](size_t first, size_t second, double weight) {
                for (const auto& one : g.place)
                    for (const auto& other : h.place)
                        if (one[first] >= 0 && other[second] >= 0)
                            found[size_t(other[second]) * n_first + size_t(one[first])] += weight;
            });
        }
        for (size_t j = 0; j < h.cells.size(); ++j)
            for (size_t i = 0; i < n_first; ++i) {
                const auto one = size_t(g.cells[i]), other = size_t(h.cells[j]);
                pairs[one * n_cells_ + other] = found[j * n_first + i];
                pairs[other * n_cells_ + one] = found[j * n_first + i];
            }
    }

    // found[cell of h][cell of g] = sum of joint[code of g][code of h] over the codes that touch them.
    static void carry_over(const CodedNodes& g, const CodedNodes& h, Room& room) {
        const size_t n_codes = h.n_codes, n_first = g.cells.size();
        room.half.resize(n_first * n_codes);
        room.turned.resize(n_first * n_codes);
        sum_lines(g.codes, room.joint.data(), n_codes, room.half.data());
        for (size_t i = 0; i < n_first; ++i)
            for (size_t f = 0; f < n_codes; ++f)
                room.turned[f * n_first + i] = room.half[i * n_codes + f];
        sum_lines(h.codes, room.turned.data(), n_first, room.found.data());
    }

    size_t n_cells_, block_bytes_ = 0;
    std::vector<CodedNodes> groups_;
};

}  // namespace

void bind_pairs(nb::module_& m) {
    const auto as_is = nb::arg().noconvert();  // what is written into a copy would be lost
    const auto as_is_or_none = nb::arg().noconvert().none();
    nb::class_<Pairs>(m, "Pairs")
        .def(nb::init<const std::vector<int>&, const std::vector<std::vector<CellMap>>&, int64_t>())
        .def("count", &Pairs::count, as_is, nb::arg(), as_is_or_none, as_is, nb::arg());
}

}  // namespace robustbn
