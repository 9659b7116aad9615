// Rows with holes: gathered into questions, answered under given tables.
//
// Results do not depend on the number of threads. Rows are read in lanes that only their number
// decides; each lane finds its own questions, and lanes are merged in order, each shard of questions
// on its own. Questions are answered pattern by pattern in lanes of equal cost, each with its own
// counts, and lanes are added in order.
#include "holes.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "hole_questions.h"
#include "hole_solver.h"
#include "parallel.h"

namespace nb = nanobind;

namespace robustbn {

namespace {

constexpr size_t N_SHARDS = 16;
constexpr size_t LANE_ROWS = 32768, MOST_LANES = 32, LANE_BYTES = size_t(256) << 20;
constexpr double LANE_COST = 50000;                     // multiplications
constexpr size_t PROGRAM_BYTES = size_t(512) << 20;     // kept; beyond, programs are made each time
constexpr size_t STAGED_ROWS = 64, POSTERIOR_ROWS = 2048;

using Codes = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using DoublesOut = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using LinesOut = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Place = std::tuple<int64_t, int64_t>;  // row and column; (-1, -1) if there is none

// What one lane of rows asks.
struct Lane {
    explicit Lane(const Web& web) : patterns(web), reader(web, patterns) {}

    Patterns patterns;
    RowReader reader;
    Questions shards[N_SHARDS];
};

template <class Code>
class RowView {
  public:
    explicit RowView(const Codes& codes)
        : data_(static_cast<const Code*>(codes.data())), d_(codes.shape(1)),
          row_(codes.stride(0)), column_(codes.stride(1)), staged_(column_ == 1 ? 0 : STAGED_ROWS * d_) {}

    // Call see(row number, codes side by side) for rows first ... last - 1, until it says stop.
    template <class See>
    void walk(size_t first, size_t last, See&& see) {
        for (size_t start = first; start < last; start += STAGED_ROWS) {
            const size_t stop = std::min(start + STAGED_ROWS, last);
            for (size_t c = 0; c < d_ && column_ != 1; ++c)
                for (size_t r = start; r < stop; ++r)
                    staged_[(r - start) * d_ + c] =
                        data_[ptrdiff_t(r) * row_ + ptrdiff_t(c) * column_];
            for (size_t r = start; r < stop; ++r)
                if (!see(r, column_ == 1 ? data_ + ptrdiff_t(r) * row_
                                         : staged_.data() + (r - start) * d_))
                    return;
        }
    }

  private:
    const Code* data_;
    size_t d_;
    ptrdiff_t row_, column_;
    std::vector<Code> staged_;
};

class Holes {
  public:
    Holes(Ints cards, const std::vector<Ints>& families, size_t largest_table, int n_sweeps,
          uint64_t seed)
        : web_(std::move(cards), families), limits_{largest_table, n_sweeps, seed},
          patterns_(web_) {
        require(n_sweeps >= 1, "at least one sweep");
    }
    Holes(const Holes&) = delete;

    // Returns the first place whose code is out of range; nothing is added then.
    Place add(const Codes& codes, const std::optional<Doubles>& weights, int n_threads) {
        require(codes.shape(1) == web_.cards.size(), "one column a node");
        require(!weights || weights->shape(0) == codes.shape(0), "one weight a row");
        require_aligned(codes, weights);
        const double* w = weights ? weights->data() : nullptr;
        nb::gil_scoped_release release;
        const std::lock_guard<std::mutex> lock(mutex_);
        require_whole();
        n_threads_ = n_threads;
        if (codes.dtype() == nb::dtype<uint8_t>()) return add_codes<uint8_t>(codes, w, n_threads);
        require(codes.dtype() == nb::dtype<uint16_t>(), "codes must be uint8 or uint16");
        return add_codes<uint16_t>(codes, w, n_threads);
    }

    // Returns the log-likelihood of what is possible and exact, and the weight of what is not
    // possible.
    std::tuple<double, double> expect(const Doubles& q, DoublesOut out,
                                      const std::optional<DoublesOut>& variance_out,
                                      int n_threads) {
        require(q.shape(0) == web_.n_cells, "one probability a cell");
        require(out.shape(0) == web_.n_cells, "one count a cell");
        require(!variance_out || variance_out->shape(0) == web_.n_cells, "one variance a cell");
        require_aligned(q, out, variance_out);
        const double* tables = q.data();
        double *counts = out.data(), *variance = variance_out ? variance_out->data() : nullptr;
        nb::gil_scoped_release release;
        const std::lock_guard<std::mutex> lock(mutex_);
        require_whole();
        prepare();
        const size_t M = web_.n_cells, per_lane = variance ? 2 * M : M;
        const size_t wanted = size_t(std::clamp(cost_.back() / LANE_COST, 1.0, double(MOST_LANES)));
        const size_t n_lanes = std::clamp(LANE_BYTES / (8 * std::max(per_lane, size_t(1))),
                                          size_t(1), wanted);
        std::vector<std::vector<double>> sums(n_lanes);
        std::vector<double> logs(n_lanes, 0.0), impossible(n_lanes, 0.0);
        run_parallel(n_lanes, n_threads, [&](size_t lane) {
            sums[lane].assign(per_lane, 0.0);
            double* lane_counts = sums[lane].data();
            Solver solver(tables, limits_);
            const size_t first = lane_start(lane, n_lanes), last = lane_start(lane + 1, n_lanes);
            each_question(solver, first, last, [&](const Questions& questions, size_t i) {
                const double weight = questions.weight(i);
                const double log_sum = solver.answer(questions.bases(i), weight, questions.hash(i),
                                                     lane_counts, variance ? lane_counts + M : nullptr);
                if (std::isinf(log_sum)) impossible[lane] += weight;
                else if (!std::isnan(log_sum)) logs[lane] += weight * log_sum;
            });
        });
        std::fill_n(counts, M, 0.0);
        if (variance) std::fill_n(variance, M, 0.0);
        double log_likelihood = 0, n_impossible = 0;
        for (size_t lane = 0; lane < n_lanes; ++lane) {
            for (size_t j = 0; j < M; ++j) counts[j] += sums[lane][j];
            if (variance)
                for (size_t j = 0; j < M; ++j) variance[j] += sums[lane][M + j];
            log_likelihood += logs[lane];
            n_impossible += impossible[lane];
        }
        return {log_likelihood, n_impossible};
    }

    // Line h of `out`: the probabilities of the states of hole h, row by row; zeros for an
    // impossible one and beyond its states. Returns the first place out of range.
    // logs[r]: the sum over the components of row r of log Z; minus infinity if it is impossible.
    Place posterior(const Codes& codes, const Doubles& q, LinesOut out, DoublesOut logs,
                    int n_threads) const {
        require(codes.shape(1) == web_.cards.size(), "one column a node");
        require(q.shape(0) == web_.n_cells, "one probability a cell");
        require(logs.shape(0) == codes.shape(0), "one number a row");
        require_aligned(codes, q, out, logs);
        const double* tables = q.data();
        nb::gil_scoped_release release;
        if (codes.dtype() == nb::dtype<uint8_t>())
            return infer<uint8_t>(codes, tables, out.data(), out.shape(0), out.shape(1), logs.data(),
                                  n_threads);
        require(codes.dtype() == nb::dtype<uint16_t>(), "codes must be uint8 or uint16");
        return infer<uint16_t>(codes, tables, out.data(), out.shape(0), out.shape(1), logs.data(),
                               n_threads);
    }

    size_t n_questions() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        size_t n = 0;
        for (const Questions& shard : shards_) n += shard.size();
        return n;
    }

    // Patterns that were asked about: those of one hole exist from the start.
    size_t n_patterns() {
        const std::lock_guard<std::mutex> lock(mutex_);
        prepare();
        size_t n = 0;
        for (size_t p = 0; p < patterns_.size(); ++p) n += start_of_pattern_[p + 1] > start_of_pattern_[p];
        return n;
    }

    double n_sampled() {
        const std::lock_guard<std::mutex> lock(mutex_);
        prepare();
        return n_sampled_;
    }

    size_t n_bytes() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        size_t total = patterns_.bytes() + order_.capacity() * sizeof(Position) +
                       start_of_pattern_.capacity() * 8 + cost_.capacity() * 8 + program_bytes_;
        for (const Questions& shard : shards_) total += shard.bytes();
        return total;
    }

  private:
    struct Position {
        uint32_t shard, index;
    };

    template <class Code>
    Place add_codes(const Codes& codes, const double* weights, int n_threads) {
        const size_t n_rows = codes.shape(0);
        const size_t n_lanes = std::clamp(n_rows / LANE_ROWS, size_t(1), MOST_LANES);
        std::vector<std::unique_ptr<Lane>> lanes(n_lanes);
        std::vector<Place> wrong(n_lanes, Place{-1, -1});
        run_parallel(n_lanes, n_threads, [&](size_t l) {
            lanes[l] = std::make_unique<Lane>(web_);
            Lane& lane = *lanes[l];
            RowView<Code> rows(codes);
            rows.walk(l * n_rows / n_lanes, (l + 1) * n_rows / n_lanes, [&](size_t r, const Code* row) {
                const double weight = weights ? weights[r] : 1.0;
                if (weight == 0) return true;
                const int column = lane.reader.read(row, [&](uint32_t p, const uint32_t* bases) {
                    const Pattern& pattern = lane.patterns[p];
                    const size_t n = pattern.families.size();
                    const uint64_t hash = hash_words(pattern.hash, bases, n);
                    lane.shards[hash % N_SHARDS].add(p, hash, bases, n, weight);
                });
                if (column >= 0) wrong[l] = {int64_t(r), column};
                return column < 0;
            });
        });
        for (const Place& place : wrong)
            if (std::get<0>(place) >= 0) return place;
        merge(lanes, n_threads);
        return {-1, -1};
    }

    void merge(const std::vector<std::unique_ptr<Lane>>& lanes, int n_threads) {
        is_whole_ = false;
        std::vector<std::vector<uint32_t>> numbers(lanes.size());
        for (size_t l = 0; l < lanes.size(); ++l)
            for (size_t p = 0; p < lanes[l]->patterns.size(); ++p)
                numbers[l].push_back(patterns_.find_or_add(lanes[l]->patterns[p].columns));
        is_prepared_ = false;
        run_parallel(N_SHARDS, n_threads, [&](size_t s) {
            for (size_t l = 0; l < lanes.size(); ++l) {
                const Questions& from = lanes[l]->shards[s];
                for (size_t i = 0; i < from.size(); ++i)
                    shards_[s].add(numbers[l][from.pattern(i)], from.hash(i), from.bases(i),
                                   lanes[l]->patterns[from.pattern(i)].families.size(),
                                   from.weight(i));
            }
        });
        is_whole_ = true;
    }

    // Rows of which some were added and some not, for want of memory, answer nothing.
    void require_whole() const {
        if (!is_whole_) throw std::bad_alloc();
    }

    // Put questions in the order of their patterns, and make programs for those that are asked.
    void prepare() {
        if (is_prepared_) return;
        const size_t n = patterns_.size();
        start_of_pattern_.assign(n + 1, 0);
        for (const Questions& shard : shards_)
            for (size_t i = 0; i < shard.size(); ++i) ++start_of_pattern_[shard.pattern(i) + 1];
        for (size_t p = 0; p < n; ++p) start_of_pattern_[p + 1] += start_of_pattern_[p];
        order_.resize(start_of_pattern_[n]);
        std::vector<size_t> next(start_of_pattern_.begin(), start_of_pattern_.end() - 1);
        for (uint32_t s = 0; s < N_SHARDS; ++s)
            for (uint32_t i = 0; i < shards_[s].size(); ++i)
                order_[next[shards_[s].pattern(i)]++] = {s, i};
        make_programs();
        is_prepared_ = true;
    }

    void make_programs() {
        const size_t n = patterns_.size(), chunk = 64, n_chunks = (n + chunk - 1) / chunk;
        programs_.resize(n);
        cost_.assign(n + 1, 0.0);
        std::vector<size_t> bytes(n, 0);
        std::vector<uint8_t> is_sampled(n, 0);
        std::atomic<size_t> kept{0};
        run_parallel(n_chunks, n_threads_, [&](size_t c) {
            for (size_t p = c * chunk; p < std::min((c + 1) * chunk, n); ++p) {
                const size_t asked = start_of_pattern_[p + 1] - start_of_pattern_[p];
                if (!asked) continue;
                if (!programs_[p])
                    programs_[p] = std::make_unique<Program>(web_, patterns_[p], limits_);
                cost_[p + 1] = programs_[p]->cost * double(asked);
                is_sampled[p] = programs_[p]->kind == Kind::sampled;
                bytes[p] = programs_[p]->bytes();
                if ((kept += bytes[p]) > PROGRAM_BYTES) {
                    kept -= bytes[p];
                    bytes[p] = 0;
                    programs_[p].reset();
                }
            }
        });
        program_bytes_ = n * sizeof(programs_[0]);
        n_sampled_ = 0;
        for (size_t p = 0; p < n; ++p) {
            program_bytes_ += bytes[p];
            cost_[p + 1] += cost_[p];
            for (size_t i = start_of_pattern_[p]; is_sampled[p] && i < start_of_pattern_[p + 1]; ++i)
                n_sampled_ += shards_[order_[i].shard].weight(order_[i].index);
        }
    }

    // The first question of a lane, by cost; a pattern's questions cost the same.
    size_t lane_start(size_t lane, size_t n_lanes) const {
        if (lane == n_lanes) return order_.size();
        const double target = cost_.back() * double(lane) / double(n_lanes);
        const size_t p = size_t(std::upper_bound(cost_.begin(), cost_.end(), target) - cost_.begin());
        if (p == 0 || p >= cost_.size()) return p == 0 ? 0 : order_.size();
        const double share = (target - cost_[p - 1]) / (cost_[p] - cost_[p - 1]);
        const size_t first = start_of_pattern_[p - 1], last = start_of_pattern_[p];
        return first + size_t(share * double(last - first));
    }

    template <class See>
    void each_question(Solver& solver, size_t first, size_t last, See&& see) const {
        std::unique_ptr<Program> own;
        for (size_t position = first, p = 0; position < last;) {
            p = size_t(std::upper_bound(start_of_pattern_.begin(), start_of_pattern_.end(), position) -
                       start_of_pattern_.begin()) - 1;
            if (!programs_[p]) own = std::make_unique<Program>(web_, patterns_[p], limits_);
            solver.load(programs_[p] ? *programs_[p] : *own);
            for (const size_t end = std::min(start_of_pattern_[p + 1], last); position < end; ++position)
                see(shards_[order_[position].shard], order_[position].index);
        }
    }

    template <class Code>
    Place infer(const Codes& codes, const double* q, double* out, size_t n_holes, size_t width,
                double* logs, int n_threads) const {
        const size_t n_rows = codes.shape(0), d = web_.cards.size();
        const size_t n_chunks = (n_rows + POSTERIOR_ROWS - 1) / POSTERIOR_ROWS;
        std::vector<size_t> first_hole(n_chunks + 1, 0);
        auto rows_of = [&](size_t c) { return std::min((c + 1) * POSTERIOR_ROWS, n_rows); };
        run_parallel(n_chunks, n_threads, [&](size_t c) {
            RowView<Code>(codes).walk(c * POSTERIOR_ROWS, rows_of(c), [&](size_t, const Code* row) {
                for (size_t i = 0; i < d; ++i) first_hole[c + 1] += row[i] == web_.cards[i];
                return true;
            });
        });
        for (size_t c = 0; c < n_chunks; ++c) first_hole[c + 1] += first_hole[c];
        require(first_hole[n_chunks] == n_holes, "one line a hole");
        for (int32_t card : web_.cards) require(size_t(card) <= width, "one column a state");
        std::vector<Place> wrong(n_chunks, Place{-1, -1});
        run_parallel(n_chunks, n_threads, [&](size_t c) {
            wrong[c] = infer_rows<Code>(codes, q, c * POSTERIOR_ROWS, rows_of(c),
                                        out + first_hole[c] * width, width, logs);
        });
        for (const Place& place : wrong)
            if (std::get<0>(place) >= 0) return place;
        return {-1, -1};
    }

    // Rows of a chunk that ask the same are answered once.
    template <class Code>
    Place infer_rows(const Codes& codes, const double* q, size_t first, size_t last, double* out,
                     size_t width, double* logs) const {
        struct Hole {
            uint32_t question;
            int32_t column;
        };
        struct Asked {
            uint32_t question;
            size_t row;
        };
        std::vector<Asked> questions_of_rows;
        std::fill(logs + first, logs + last, 0.0);
        Patterns patterns(web_);
        RowReader reader(web_, patterns);
        Questions questions;
        std::vector<Hole> holes;
        Place wrong{-1, -1};
        RowView<Code>(codes).walk(first, last, [&](size_t r, const Code* row) {
            const size_t start = holes.size();
            const int column = reader.read(row, [&](uint32_t p, const uint32_t* bases) {
                const Pattern& pattern = patterns[p];
                questions.add(p, hash_words(pattern.hash, bases, pattern.families.size()), bases,
                              pattern.families.size(), 1.0);
                for (int32_t c : pattern.columns) holes.push_back({uint32_t(questions.last()), c});
                questions_of_rows.push_back({uint32_t(questions.last()), r});
            });
            if (column >= 0) wrong = {int64_t(r), column};
            std::sort(holes.begin() + ptrdiff_t(start), holes.end(),
                      [](const Hole& a, const Hole& b) { return a.column < b.column; });
            return column < 0;
        });
        if (std::get<0>(wrong) >= 0) return wrong;
        std::vector<std::vector<size_t>> asked(questions.size());
        for (size_t h = 0; h < holes.size(); ++h) asked[holes[h].question].push_back(h);
        std::vector<std::vector<uint32_t>> by_pattern(patterns.size());
        for (size_t i = 0; i < questions.size(); ++i)
            by_pattern[questions.pattern(i)].push_back(uint32_t(i));
        Solver solver(q, limits_);
        std::vector<double> marginals, log_sums(questions.size(), 0.0);
        for (size_t p = 0; p < patterns.size(); ++p) {
            if (by_pattern[p].empty()) continue;
            const Program program(web_, patterns[p], limits_);
            solver.load(program);
            for (uint32_t i : by_pattern[p]) {
                log_sums[i] =
                    solver.answer(questions.bases(i), 1.0, questions.hash(i), nullptr, nullptr);
                const bool is_possible = !std::isinf(log_sums[i]);
                solver.marginals(marginals);
                for (size_t h : asked[i]) {
                    double* line = out + h * width;
                    std::fill_n(line, width, 0.0);
                    size_t start = 0, k = 0;
                    while (program.columns[k] != holes[h].column) start += size_t(program.cards[k++]);
                    if (is_possible) std::copy_n(marginals.data() + start, program.cards[k], line);
                }
            }
        }
        for (const Asked& each : questions_of_rows) logs[each.row] += log_sums[each.question];
        return wrong;
    }

    Web web_;
    Limits limits_;
    Patterns patterns_;
    Questions shards_[N_SHARDS];
    mutable std::mutex mutex_;
    int n_threads_ = 1;
    bool is_whole_ = true;
    // made by `prepare`
    bool is_prepared_ = false;
    std::vector<Position> order_;  // by pattern
    std::vector<size_t> start_of_pattern_;
    std::vector<double> cost_;  // of all patterns before
    std::vector<std::unique_ptr<Program>> programs_;
    size_t program_bytes_ = 0;
    double n_sampled_ = 0;
};

}  // namespace

void bind_holes(nb::module_& m) {
    const auto as_is = nb::arg().noconvert();  // what is written into a copy would be lost
    const auto as_is_or_none = nb::arg().noconvert().none();
    nb::class_<Holes>(m, "Holes")
        .def(nb::init<Ints, const std::vector<Ints>&, size_t, int, uint64_t>())
        .def("add", &Holes::add, as_is, as_is_or_none, nb::arg())
        .def("expect", &Holes::expect, as_is, as_is, as_is_or_none, nb::arg())
        .def("posterior", &Holes::posterior, as_is, as_is, as_is, as_is, nb::arg())
        .def_prop_ro("n_questions", &Holes::n_questions)
        .def_prop_ro("n_patterns", &Holes::n_patterns)
        .def_prop_ro("n_sampled", &Holes::n_sampled)
        .def_prop_ro("n_bytes", &Holes::n_bytes);
}

}  // namespace robustbn
