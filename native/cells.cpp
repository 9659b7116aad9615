// Cells that show another value than the true one: true values are drawn given all others.
//
// A row's true values come from the network. A recorded cell shows the true value or, with the rate of
// its column, one drawn from the column's errors. A sweep draws the true value of every cell of a row
// given its Markov blanket, by tables that do not change meanwhile; so rows are independent of each
// other, and a row's own count can be taken out. Every draw has a number of its own (row, column,
// sweep), so that it does not matter who makes it; sums are made in lanes, which are added in order.
#include "cells.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "arrays.h"
#include "kernels.h"
#include "parallel.h"

namespace nb = nanobind;

namespace robustbn {
namespace {

using Ints = std::vector<int32_t>;
template <class T>
using Flat = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr double SETTLED = 1e-3;      // probability: a cell that is less likely wrong stays as it is
constexpr double VOTED = 0.02;        // probability: a cell that is less likely wrong has no other state
constexpr double MOST_CALM = 0.05;    // probability: no cell that is likelier wrong is left undrawn
constexpr double TOO_SMALL = 1e-150;  // products of probabilities below it are scaled up
constexpr size_t MOST_LANES = 16, LANE_ENTRIES = size_t(1) << 24;  // doubles in all lanes

// Numbers by 64-bit keys, none of which is added after the beginning.
class Index {
  public:
    void build(const uint64_t* keys, const double* values, size_t n) {
        size_t size = 16;
        while (size < 2 * n) size *= 2;
        mask_ = size - 1;
        slots_.assign(size, {0, 0.0, false});
        for (size_t i = 0; i < n; ++i) {
            size_t at = size_t(mix(keys[i])) & mask_;
            while (slots_[at].is_used && slots_[at].key != keys[i]) at = (at + 1) & mask_;
            slots_[at] = {keys[i], values[i], true};
        }
    }
    double find(uint64_t key) const {
        for (size_t at = size_t(mix(key)) & mask_; slots_[at].is_used; at = (at + 1) & mask_)
            if (slots_[at].key == key) return slots_[at].value;
        return 0.0;
    }

  private:
    struct Slot {
        uint64_t key;
        double value;
        bool is_used;
    };
    std::vector<Slot> slots_;
    size_t mask_ = 0;
};

// One node's table, and where it occurs.
struct Node {
    int32_t card;
    Ints parents;
    std::vector<uint64_t> steps;                     // of each parent, in configurations
    std::vector<std::pair<int32_t, uint64_t>> children;  // and this node's step in each one's table
    bool is_hashed;
    size_t n_configurations;
    const double *cells, *configurations, *states;
    Index cell_index, configuration_index;
    double n_rows, concentration, novelty, shaped;
    Ints all;      // its states in order, if all are tried
    Ints blanket;  // other nodes whose probabilities depend on its state
    size_t first_cell;
};

class CellTables {
  public:
    // Node i has the cells cell_start[i] ... of `cells`; if it is hashed, `cell_keys` says which they
    // are, else they are all in order; likewise for configurations. `states`: how often each state of
    // each node is seen. shapes: for the recorded state o of node i, number state_start[i] + o, true
    // states and P(o | true state, error). nearby: for (node, neighbour) and each state of the
    // neighbour, states of the node that are tried; near_nodes and near_columns name the pairs.
    CellTables(Ints cards, std::vector<Ints> parents, std::vector<bool> is_hashed,
               Flat<const int64_t> cell_start, Flat<const uint64_t> cell_keys, Flat<const double> cells,
               Flat<const int64_t> config_start, Flat<const uint64_t> config_keys,
               Flat<const double> configs, Flat<const double> states, Flat<const double> concentration,
               Flat<const double> novelty, Flat<const double> shaped, Flat<const int64_t> shape_start,
               Flat<const int32_t> shape_states, Flat<const double> shape_values, Ints near_nodes,
               Ints near_columns, Flat<const int64_t> near_start, Flat<const int32_t> near_states)
        : cards_(std::move(cards)), near_nodes_(std::move(near_nodes)),
          near_columns_(std::move(near_columns)), held_{cell_keys, config_keys}, cells_(cells),
          configs_(configs), states_(states), shape_start_(shape_start), shape_states_(shape_states),
          shape_values_(shape_values), near_start_(near_start), near_states_(near_states) {
        const size_t d = cards_.size();
        require_aligned(cell_start, cell_keys, cells, config_start, config_keys, configs, states,
                        concentration, novelty, shaped, shape_start, shape_states, shape_values,
                        near_start, near_states);
        require(d && parents.size() == d && is_hashed.size() == d && cell_start.shape(0) == d + 1 &&
                    config_start.shape(0) == d + 1 && concentration.shape(0) == d &&
                    novelty.shape(0) == d && shaped.shape(0) == d,
                "one entry a node");
        require(cell_start.data()[0] == 0 && config_start.data()[0] == 0, "tables begin at 0");
        nodes_.resize(d);
        state_start_.assign(1, 0);
        for (size_t i = 0; i < d; ++i) {
            require(cards_[i] >= 1, "a node has a state");
            state_start_.push_back(state_start_[i] + size_t(cards_[i]));
        }
        require(states.shape(0) == state_start_[d], "one count a state");
        for (size_t i = 0; i < d; ++i)
            build_node(i, std::move(parents[i]), is_hashed[i], cell_start.data(), cell_keys,
                       config_start.data(), config_keys);
        for (size_t i = 0; i < d; ++i) {
            nodes_[i].concentration = concentration.data()[i];
            nodes_[i].novelty = novelty.data()[i];
            nodes_[i].shaped = shaped.data()[i];
            require(nodes_[i].concentration > 0 && nodes_[i].novelty > 0, "smoothing is above 0");
        }
        require(size_t(cell_start.data()[d]) <= cells.shape(0) &&
                    size_t(config_start.data()[d]) <= configs.shape(0), "tables are too short");
        require_lists(shape_start, shape_states, state_start_[d], "shapes");
        require(shape_values.shape(0) == shape_states.shape(0), "one value a shape");
        size_t n_lines = 0;
        near_first_.assign(1, 0);
        require(near_nodes_.size() == near_columns_.size(), "pairs of nodes");
        near_of_.resize(d + 1, 0);
        for (size_t e = 0; e < near_nodes_.size(); ++e) {
            require(near_nodes_[e] >= 0 && size_t(near_nodes_[e]) < d && near_columns_[e] >= 0 &&
                        size_t(near_columns_[e]) < d && (!e || near_nodes_[e] >= near_nodes_[e - 1]),
                    "pairs of nodes, in order");
            n_lines += size_t(cards_[size_t(near_columns_[e])]);
            near_first_.push_back(n_lines);
            ++near_of_[size_t(near_nodes_[e]) + 1];
        }
        for (size_t i = 0; i < d; ++i) near_of_[i + 1] += near_of_[i];
        for (size_t i = 0; i < d; ++i)
            for (int32_t v = 0; tries_all(i) && v < cards_[i]; ++v) nodes_[i].all.push_back(v);
        require_lists(near_start, near_states, n_lines, "nearby states");
        for (size_t e = 0; e < near_nodes_.size(); ++e)
            require_states(near_start, near_states, near_first_[e], near_first_[e + 1],
                           cards_[size_t(near_nodes_[e])]);
        for (size_t i = 0; i < d; ++i) {
            require_states(shape_start, shape_states, state_start_[i], state_start_[i + 1], cards_[i]);
            Ints& blanket = nodes_[i].blanket = nodes_[i].parents;
            for (const auto& [child, step] : nodes_[i].children) {
                blanket.push_back(child);
                const Ints& others = nodes_[size_t(child)].parents;
                blanket.insert(blanket.end(), others.begin(), others.end());
            }
            std::sort(blanket.begin(), blanket.end());
            blanket.erase(std::unique(blanket.begin(), blanket.end()), blanket.end());
            blanket.erase(std::remove(blanket.begin(), blanket.end(), int32_t(i)), blanket.end());
        }
    }

    size_t n_nodes() const { return nodes_.size(); }
    const Node& node(size_t i) const { return nodes_[i]; }
    bool tries_all(size_t j) const { return near_of_[j] == near_of_[j + 1]; }

    // The states of node j that are tried for a row: all, or those seen beside its neighbours.
    const Ints& list_states(size_t j, int32_t seen, const int32_t* truth, Ints& out) const {
        if (tries_all(j)) return nodes_[j].all;
        out.clear();
        const auto add = [&out](int32_t v) {
            if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
        };
        add(truth[j]);
        if (seen < cards_[j]) {
            add(seen);
            const size_t line = state_start_[j] + size_t(seen);
            for (int64_t x = shape_start_.data()[line]; x < shape_start_.data()[line + 1]; ++x)
                add(shape_states_.data()[x]);
        }
        for (size_t e = near_of_[j]; e < near_of_[j + 1]; ++e) {
            const size_t line = near_first_[e] + size_t(truth[near_columns_[e]]);
            for (int64_t x = near_start_.data()[line]; x < near_start_.data()[line + 1]; ++x)
                add(near_states_.data()[x]);
        }
        return out;
    }

    // P(seen | true state v, error).
    double error(size_t j, int32_t seen, int32_t v) const {
        const Node& n = nodes_[j];
        double shape = 0.0;
        if (n.shaped > 0) {
            const size_t line = state_start_[j] + size_t(seen);
            for (int64_t x = shape_start_.data()[line]; x < shape_start_.data()[line + 1]; ++x)
                if (shape_states_.data()[x] == v) shape = shape_values_.data()[x];
        }
        return (1 - n.shaped) / n.card + n.shaped * shape;
    }

    uint64_t configuration(size_t i, const int32_t* truth) const {
        const Node& n = nodes_[i];
        uint64_t at = 0;
        for (size_t k = 0; k < n.parents.size(); ++k)
            at += n.steps[k] * uint64_t(truth[n.parents[k]]);
        return at;
    }
    double cell(const Node& n, uint64_t configuration, int32_t v) const {
        const uint64_t at = configuration * uint64_t(n.card) + uint64_t(v);
        return n.is_hashed ? n.cell_index.find(at) : n.cells[at];
    }
    double total(const Node& n, uint64_t configuration) const {
        return n.is_hashed ? n.configuration_index.find(configuration) : n.configurations[configuration];
    }

  private:
    void build_node(size_t i, Ints parents, bool is_hashed, const int64_t* cell_start,
                    const Flat<const uint64_t>& cell_keys, const int64_t* config_start,
                    const Flat<const uint64_t>& config_keys) {
        Node& n = nodes_[i];
        const int64_t n_cells = cell_start[i + 1] - cell_start[i];
        const int64_t n_configs = config_start[i + 1] - config_start[i];
        require(n_cells >= 0 && n_configs >= 0 && size_t(cell_start[i + 1]) <= cells_.shape(0) &&
                    size_t(config_start[i + 1]) <= configs_.shape(0), "tables lie one after another");
        n.card = cards_[i];
        n.parents = std::move(parents);
        n.steps.assign(n.parents.size(), 1);
        n.is_hashed = is_hashed;
        uint64_t step = 1;
        for (size_t k = n.parents.size(); k-- > 0;) {
            const int32_t p = n.parents[k];
            require(p >= 0 && size_t(p) < cards_.size() && size_t(p) != i, "no such parent");
            n.steps[k] = step;
            const uint64_t before = step;
            step *= uint64_t(cards_[size_t(p)]);
            const bool is_whole = step / uint64_t(cards_[size_t(p)]) == before;
            require(is_hashed || (is_whole && step < (UINT64_C(1) << 40)), "a table is too large");
            nodes_[size_t(p)].children.emplace_back(int32_t(i), n.steps[k]);
        }
        n.n_configurations = size_t(step);
        n.first_cell = size_t(cell_start[i]);
        n.cells = cells_.data() + cell_start[i];
        n.configurations = configs_.data() + config_start[i];
        n.states = states_.data() + state_start_[i];
        n.n_rows = 0;
        for (int32_t v = 0; v < n.card; ++v) n.n_rows += n.states[v];
        if (is_hashed) {
            require(size_t(cell_start[i + 1]) <= cell_keys.shape(0) &&
                        size_t(config_start[i + 1]) <= config_keys.shape(0), "one key a cell");
            n.cell_index.build(cell_keys.data() + cell_start[i], n.cells, size_t(n_cells));
            n.configuration_index.build(config_keys.data() + config_start[i], n.configurations,
                                        size_t(n_configs));
        } else {
            require(uint64_t(n_configs) == step && uint64_t(n_cells) == step * uint64_t(n.card),
                    "a table has one entry a cell");
        }
    }
    static void require_lists(const Flat<const int64_t>& start, const Flat<const int32_t>& entries,
                              size_t n_lines, const char* message) {
        require(start.shape(0) == n_lines + 1 && start.data()[0] == 0, message);
        for (size_t k = 0; k < n_lines; ++k) require(start.data()[k] <= start.data()[k + 1], message);
        require(size_t(start.data()[n_lines]) == entries.shape(0), message);
        for (size_t k = 0; k < entries.shape(0); ++k) require(entries.data()[k] >= 0, message);
    }

    static void require_states(const Flat<const int64_t>& start, const Flat<const int32_t>& entries,
                               size_t first, size_t last, int32_t card) {
        for (int64_t x = start.data()[first]; x < start.data()[last]; ++x)
            require(entries.data()[x] < card, "no such state");
    }

    Ints cards_, near_nodes_, near_columns_;
    std::vector<Flat<const uint64_t>> held_;
    Flat<const double> cells_, configs_, states_;
    Flat<const int64_t> shape_start_;
    Flat<const int32_t> shape_states_;
    Flat<const double> shape_values_;
    Flat<const int64_t> near_start_;
    Flat<const int32_t> near_states_;
    std::vector<size_t> state_start_, near_first_, near_of_;
    std::vector<Node> nodes_;
};

// What is asked of a pass, and where the answers go; pointers may be null. Gains of all columns are
// followed by their expected numbers of wrong cells.
struct Task {
    const CellTables* tables;
    const int32_t *seen, *groups;
    int32_t* truth;
    const double *rates, *weights;
    double own;   // weight of a row's own count in the tables, which is taken out
    double calm;  // times its rate: a right cell that is less likely wrong is not drawn
    uint64_t key, first_row;
    int n_sweeps, n_burn;
    bool asks_gains;  // else only wrong cells are counted
    float *wrong, *probability;
    int32_t* likely;
};

// The true values of rows. The probabilities of a cell's states are computed again only when a value
// that they depend on has changed; what was computed counts for all sweeps since. Where every table
// holds all its cells, they are computed first for a block of rows, node by node, in loops that branch
// on the same for all rows.
class Sweeper {
  public:
    Sweeper(const Task& task, double* counts, double* gains)
        : t_(task), tables_(*task.tables), d_(task.tables->n_nodes()),
          n_block_(std::max(size_t(1), std::min(MOST_IN_BLOCK, BLOCK_CELLS / d_))), counts_(counts),
          gains_(gains), configuration_(d_), own_configuration_(d_), own_state_(d_), base_(d_),
          wrong_(d_), nodes_(d_), all_cells_(d_ * n_block_), tried_(d_), held_(d_), votes_(d_), awake_(d_) {
        size_t n_states = 0;
        for (size_t i = 0; i < d_; ++i) {
            const Node& n = tables_.node(i);
            is_dense_ &= !n.is_hashed && !n.all.empty() && n.shaped <= 0;
            nodes_[i].first = n_states;
            n_states += size_t(n.card);
            build(n, nodes_[i]);
        }
        if (is_dense_) p_.resize(n_states * n_block_);
        for (size_t c = 0; is_dense_ && c < d_ * n_block_; ++c) {
            all_cells_[c].p = p_.data() + (c / d_) * n_states + nodes_[c % d_].first;
            all_cells_[c].states = &tables_.node(c % d_).all;
        }
    }

    void sweep_all(size_t first, size_t end) {
        for (; first < end; first += n_block_) {
            const size_t n = std::min(n_block_, end - first);
            for (size_t i = 0; is_dense_ && i < d_; ++i) load(first, n, i);
            for (size_t j = 0; is_dense_ && j < d_; ++j) weigh_block(first, n, j);
            for (size_t r = 0; r < n; ++r) sweep(first + r, all_cells_.data() + r * d_);
        }
    }

  private:
    static constexpr size_t MOST_IN_BLOCK = 8, BLOCK_CELLS = 8192;  // rows, and cells of all of them

    struct Vote {
        int32_t state;
        double sum;
    };
    struct Cell {  // what is known of a cell's states
        bool is_stale, is_sure;
        int since;  // kept sweeps before it was computed
        uint64_t configuration;
        double at_seen, gain, from, to;  // the last two: what draws its present state
        const Ints* states;
        double* p;
    };
    struct Loaded {  // a node's table, and what it gives for each row of a block
        size_t first;                                    // of its states among all
        double per_row;                                  // what one row smooths by
        std::vector<double> base, own_base;              // by state; and with the row's own count out
        std::vector<double> inverse, own_inverse;        // by configuration: what counts are divided by
        size_t configuration[MOST_IN_BLOCK], state[MOST_IN_BLOCK];
        double more[MOST_IN_BLOCK], own[MOST_IN_BLOCK];  // base and probability of the present state
    };

    void build(const Node& n, Loaded& at) const {
        at.per_row = n.concentration / (std::max(n.n_rows - t_.own, 0.0) + n.novelty);
        for (int32_t v = 0; v < n.card; ++v) {
            const double out = std::max(n.states[v] - t_.own, 0.0);
            at.base.push_back(at.per_row * (n.states[v] + n.novelty / n.card));
            at.own_base.push_back(at.per_row * (out + n.novelty / n.card));
        }
        for (size_t k = 0; !n.is_hashed && k < n.n_configurations; ++k) {
            const double out = std::max(n.configurations[k] - t_.own, 0.0);
            at.inverse.push_back(1 / (n.configurations[k] + n.concentration));
            at.own_inverse.push_back(1 / (out + n.concentration));
        }
    }

    const double* rates_of(size_t row) const {
        return t_.rates + (t_.groups ? size_t(t_.groups[row]) * d_ : 0);
    }

    // --- a block of rows ---

    void load(size_t first, size_t n_rows, size_t i) {
        const Node& n = tables_.node(i);
        Loaded& at = nodes_[i];
        const int32_t* truth = t_.truth + first * d_;
        for (size_t r = 0; r < n_rows; ++r) {
            at.state[r] = size_t(truth[r * d_ + i]);
            at.configuration[r] = 0;
        }
        for (size_t k = 0; k < n.parents.size(); ++k) {
            const int32_t* parent = truth + n.parents[k];
            for (size_t r = 0; r < n_rows; ++r) at.configuration[r] += n.steps[k] * size_t(parent[r * d_]);
        }
        for (size_t r = 0; r < n_rows; ++r) {
            const double count = n.cells[at.configuration[r] * size_t(n.card) + at.state[r]];
            at.more[r] = at.own_base[at.state[r]];
            at.own[r] = (std::max(count - t_.own, 0.0) + at.more[r]) * at.own_inverse[at.configuration[r]];
        }
    }

    // Compute the probabilities of one cell's states in all rows of a block.
    void weigh_block(size_t first, size_t n_rows, size_t j) {
        const Node& n = tables_.node(j);
        const Loaded& at = nodes_[j];
        const size_t card = size_t(n.card);
        const auto p_of = [&](size_t r) { return all_cells_[r * d_ + j].p; };
        for (size_t r = 0; r < n_rows; ++r) {
            const double* line = n.cells + at.configuration[r] * card;
            double* p = p_of(r);
            for (size_t k = 0; k < card; ++k) p[k] = line[k] + at.base[k];
            p[at.state[r]] = std::max(line[at.state[r]] - t_.own, 0.0) + at.more[r];
        }
        size_t n_done = 0;
        for (const auto& [i, step] : n.children) {
            const Loaded& child = nodes_[size_t(i)];
            const size_t width = size_t(tables_.node(size_t(i)).card);
            for (size_t r = 0; r < n_rows; ++r) {
                const size_t rest = child.configuration[r] - step * at.state[r];
                const double* count = tables_.node(size_t(i)).cells + rest * width + child.state[r];
                const double *inverse = child.inverse.data() + rest, more = child.more[r];
                double* p = p_of(r);
                const double kept = p[at.state[r]] * child.own[r];
                for (size_t k = 0; k < card; ++k) p[k] *= (count[k * step * width] + more) * inverse[k * step];
                p[at.state[r]] = kept;
            }
            if (++n_done % 8) continue;
            for (size_t r = 0; r < n_rows; ++r) rescale(p_of(r), card);
        }
        for (size_t r = 0; r < n_rows; ++r) {
            Cell& cell = all_cells_[r * d_ + j];
            cell.configuration = at.configuration[r];
            conclude_cell(j, cell, card, t_.seen[(first + r) * d_ + j], rates_of(first + r)[j]);
        }
    }

    static void rescale(double* p, size_t n) {
        const double largest = *std::max_element(p, p + n);
        for (size_t k = 0; largest < TOO_SMALL && k < n; ++k) p[k] /= std::max(largest, 1e-300);
    }

    // --- a row ---

    void sweep(size_t row, Cell* cells) {
        cells_ = cells;
        seen_ = t_.seen + row * d_;
        truth_ = t_.truth + row * d_;
        rates_ = rates_of(row);
        n_kept_ = 0;
        weight_ = (t_.weights ? t_.weights[row] : 1.0) / (t_.n_sweeps - t_.n_burn);
        bool is_quiet = is_dense_;
        for (size_t i = 0; i < d_; ++i) {
            Cell& cell = cells_[i];
            cell.is_stale = !is_dense_;
            cell.since = 0;
            wrong_[i] = 0;
            awake_[i] = !is_dense_ || !cell.is_sure || truth_[i] != seen_[i];
            is_quiet &= !awake_[i];
        }
        if (is_quiet) {
            n_kept_ = t_.n_sweeps - t_.n_burn;
        } else {
            begin();
            for (int s = 0; s < t_.n_sweeps && !is_quiet; ++s) {
                is_quiet = true;
                for (size_t j = 0; j < d_; ++j) {
                    if (!awake_[j]) continue;
                    awake_[j] = !visit(j, row, s);
                    is_quiet &= !awake_[j];
                }
                n_kept_ += is_quiet ? t_.n_sweeps - std::max(s, t_.n_burn) : int(s >= t_.n_burn);
            }
        }
        for (size_t j = 0; j < d_; ++j) keep(j);
        if (t_.likely || t_.wrong) conclude(row);
    }

    void begin() {
        for (size_t i = 0; i < d_; ++i) {
            own_configuration_[i] = configuration_[i] = tables_.configuration(i, truth_);
            own_state_[i] = truth_[i];
            base_[i] = base(i, truth_[i]);
        }
    }

    // Draw a cell; return whether it stays as it is recorded, surely enough.
    bool visit(size_t j, size_t row, int s) {
        Cell& cell = cells_[j];
        if (cell.is_stale) {
            keep(j);
            compute(j);
        }
        if (cell.is_sure && truth_[j] == seen_[j]) return true;
        const uint64_t number = ((t_.first_row + row) * d_ + j) * 1024 + uint64_t(s) + 1;
        const double u = double(mix(t_.key + number * GOLDEN) >> 11) * 0x1p-53;
        if (u >= cell.from && u < cell.to) return false;
        double reached = 0;
        for (size_t k = 0; k < cell.states->size(); ++k) {
            const double from = reached;
            reached += cell.p[k];
            if (u < reached) {
                change(j, (*cell.states)[k]);
                cell.from = from;
                cell.to = reached;
                break;
            }
        }
        return false;
    }

    void change(size_t j, int32_t state) {
        const int64_t by = int64_t(state) - int64_t(truth_[j]);
        if (!by) return;
        truth_[j] = state;
        base_[j] = base(j, state);
        for (const auto& [i, step] : tables_.node(j).children) configuration_[size_t(i)] += step * uint64_t(by);
        for (const int32_t i : tables_.node(j).blanket) {
            cells_[size_t(i)].is_stale = true;
            awake_[size_t(i)] = 1;
        }
        cells_[j].is_stale = !tables_.tries_all(j);  // its true state is among those that are tried
    }

    // Compute the probabilities of a cell's states given all others.
    void compute(size_t j) {
        Cell& cell = cells_[j];
        cell.states = &tables_.list_states(j, seen_[j], truth_, tried_[j]);
        if (!is_dense_) {
            held_[j].resize(cell.states->size());
            cell.p = held_[j].data();
        }
        weigh(j, *cell.states, cell.p);
        cell.configuration = configuration_[j];
        cell.since = n_kept_;
        conclude_cell(j, cell, cell.states->size(), seen_[j], rates_[j]);
    }

    // Turn what the tables say of the states into probabilities, by what is recorded.
    void conclude_cell(size_t j, Cell& cell, size_t n_tried, int32_t seen, double rate) const {
        const Node& n = tables_.node(j);
        const Ints& states = *cell.states;
        double sum = 0, at_seen = 0, alone = 1;
        for (size_t k = 0; seen < n.card && k < n_tried; ++k) {
            double& p = cell.p[k];
            const double error = n.shaped <= 0 ? rate / n.card : rate * tables_.error(j, seen, states[k]);
            if (states[k] == seen) {
                alone = p;
                at_seen = p *= error + 1 - rate;
            } else {
                p *= error;
            }
        }
        for (size_t k = 0; k < n_tried; ++k) sum += cell.p[k];
        const double scale = 1 / sum;
        for (size_t k = 0; k < n_tried; ++k) cell.p[k] *= scale;
        cell.gain = t_.asks_gains && seen < n.card ? std::log(sum / alone) : 0.0;
        cell.at_seen = at_seen / sum;  // exactly 1 where nothing else can be
        cell.is_stale = false;
        cell.is_sure = 1 - cell.at_seen < std::min(t_.calm * rate, MOST_CALM) + SETTLED;
        cell.from = cell.to = 0;
    }

    // Fill p with the probability of each state given the blanket, up to a factor.
    void weigh(size_t j, const Ints& states, double* p) const {
        const Node& n = tables_.node(j);
        const uint64_t configuration = configuration_[j];
        const size_t n_tried = states.size();
        const bool is_own = configuration == own_configuration_[j];
        for (size_t k = 0; k < n_tried; ++k) {
            const int32_t v = states[k];
            const double count = tables_.cell(n, configuration, v);
            p[k] = (is_own && v == own_state_[j] ? std::max(count - t_.own, 0.0) : count) + base(j, v);
        }
        size_t n_done = 0;
        for (const auto& [i, step] : n.children) {
            const Node& child = tables_.node(size_t(i));
            const uint64_t rest = configuration_[size_t(i)] - step * uint64_t(truth_[j]);
            const double more = base_[size_t(i)], *inverse = nodes_[size_t(i)].inverse.data();
            for (size_t k = 0; k < n_tried; ++k) {
                const uint64_t at = rest + step * uint64_t(states[k]);
                if (child.is_hashed || at == own_configuration_[size_t(i)])
                    p[k] *= in_child(size_t(i), at);
                else
                    p[k] *= (tables_.cell(child, at, truth_[i]) + more) * inverse[at];
            }
            if (++n_done % 8 == 0) rescale(p, n_tried);
        }
    }

    // The probability of a child's present state in one of its configurations.
    double in_child(size_t i, uint64_t at) const {
        const Node& child = tables_.node(i);
        const double own = at == own_configuration_[i] ? t_.own : 0.0;
        double count = tables_.cell(child, at, truth_[i]);
        if (truth_[i] == own_state_[i]) count = std::max(count - own, 0.0);
        return (count + base_[i]) / (std::max(tables_.total(child, at) - own, 0.0) + child.concentration);
    }

    // How often a state would be seen where nothing was: by its share of all rows, smoothed.
    double base(size_t i, int32_t v) const {
        return v == own_state_[i] ? nodes_[i].own_base[size_t(v)] : nodes_[i].base[size_t(v)];
    }

    // Count what was computed of a cell, for the sweeps since.
    void keep(size_t j) {
        const Cell& cell = cells_[j];
        const double times = n_kept_ - cell.since;
        if (times <= 0) return;
        wrong_[j] += times * (1 - cell.at_seen);
        const Node& n = tables_.node(j);
        const size_t n_tried = cell.states->size();
        if (counts_ && !n.is_hashed) {
            double* line = counts_ + n.first_cell + cell.configuration * uint64_t(n.card);
            for (size_t k = 0; k < n_tried; ++k) line[(*cell.states)[k]] += times * weight_ * cell.p[k];
        }
        if (t_.likely && 1 - cell.at_seen >= VOTED)
            for (size_t k = 0; k < n_tried; ++k) vote(j, (*cell.states)[k], times * cell.p[k]);
        if (!gains_) return;
        gains_[j] += times * weight_ * cell.gain;
        if (seen_[j] < n.card) gains_[d_ + j] += times * weight_ * (1 - cell.at_seen);
    }

    void vote(size_t j, int32_t state, double p) {
        for (Vote& each : votes_[j])
            if (each.state == state) {
                each.sum += p;
                return;
            }
        votes_[j].push_back({state, p});
    }

    void conclude(size_t row) {
        for (size_t j = 0; j < d_; ++j) {
            if (t_.wrong) t_.wrong[row * d_ + j] = float(wrong_[j] / n_kept_);
            if (!t_.likely) continue;
            Vote best{seen_[j], 0.0};
            for (const Vote& each : votes_[j]) {
                const bool is_first = each.sum == best.sum && each.state < best.state;
                if (each.state != seen_[j] && (each.sum > best.sum || is_first)) best = each;
            }
            t_.likely[row * d_ + j] = best.state;
            t_.probability[row * d_ + j] = float(best.sum / n_kept_);
            votes_[j].clear();
        }
    }

    const Task& t_;
    const CellTables& tables_;
    size_t d_, n_block_;
    double *counts_, *gains_;
    bool is_dense_ = true;
    int n_kept_ = 0;
    double weight_ = 1.0;  // of the row, for each kept sweep
    const int32_t* seen_ = nullptr;
    int32_t* truth_ = nullptr;
    const double* rates_ = nullptr;
    Cell* cells_ = nullptr;  // of the row
    std::vector<uint64_t> configuration_, own_configuration_;
    Ints own_state_;
    std::vector<double> base_, wrong_;  // base_: of each node's present state
    std::vector<Loaded> nodes_;
    std::vector<Cell> all_cells_;  // of a block of rows
    std::vector<double> p_;
    std::vector<Ints> tried_;                // where not all states are tried: those of a row's cells,
    std::vector<std::vector<double>> held_;  // and their probabilities
    std::vector<std::vector<Vote>> votes_;
    std::vector<char> awake_;  // cells that are not known to stay as they are
};

void sweep_cells(const CellTables& tables, Matrix<const int32_t> seen, Matrix<int32_t> truth,
                 Matrix<const double> rates, std::optional<Flat<const int32_t>> groups,
                 std::optional<Flat<const double>> weights, double own, double calm, uint64_t key,
                 uint64_t first_row, int n_sweeps, int n_burn, bool asks_gains,
                 std::optional<Matrix<float>> wrong, std::optional<Matrix<int32_t>> likely,
                 std::optional<Matrix<float>> probability, std::optional<Flat<double>> counts,
                 std::optional<Flat<double>> gains, int n_threads) {
    const size_t n = seen.shape(0), d = tables.n_nodes();
    const auto fits = [&](const auto& array) { return array.shape(0) == n && array.shape(1) == d; };
    require_aligned(seen, truth, rates, groups, weights, wrong, likely, probability, counts, gains);
    require(fits(seen) && fits(truth) && (!wrong || fits(*wrong)) && (!likely || fits(*likely)) &&
                (!probability || fits(*probability)) && bool(likely) == bool(probability),
            "one line a row, one column a node");
    require(rates.shape(1) == d && rates.shape(0) >= 1 && (!groups || groups->shape(0) == n) &&
                (!weights || weights->shape(0) == n) && (!gains || gains->shape(0) == 2 * d),
            "shapes differ");
    require(0 <= n_burn && n_burn < n_sweeps && n_sweeps <= 1024, "1 to 1024 sweeps, of which some count");
    size_t n_cells = 0;
    for (size_t i = 0; i < d; ++i)
        if (const Node& node = tables.node(i); !node.is_hashed)
            n_cells = std::max(n_cells, node.first_cell + node.n_configurations * size_t(node.card));
    require(!counts || counts->shape(0) >= n_cells, "one count a cell");
    Ints cards;
    for (size_t j = 0; j < d; ++j) cards.push_back(tables.node(j).card);
    for (size_t row = 0; row < n; ++row) {
        const int32_t *shown = seen.data() + row * d, *true_state = truth.data() + row * d;
        bool is_known = true;
        for (size_t j = 0; j < d; ++j)
            is_known &= shown[j] >= 0 && shown[j] <= cards[j] && true_state[j] >= 0 && true_state[j] < cards[j];
        require(is_known, "no such state");
    }
    for (size_t k = 0; groups && k < n; ++k)
        require(groups->data()[k] >= 0 && size_t(groups->data()[k]) < rates.shape(0), "no such group");
    const Task task{&tables, seen.data(), groups ? groups->data() : nullptr, truth.data(), rates.data(),
                    weights ? weights->data() : nullptr, own, calm, key, first_row, n_sweeps, n_burn,
                    asks_gains,
                    wrong ? wrong->data() : nullptr, probability ? probability->data() : nullptr,
                    likely ? likely->data() : nullptr};
    const size_t size = counts ? n_cells : 0, n_gains = gains ? 2 * d : 0;
    const size_t most = std::min(MOST_LANES, LANE_ENTRIES / (size + n_gains + 1));
    const size_t n_lanes = std::max(size_t(1), std::min(most, n));
    double* into = counts ? counts->data() : nullptr;
    double* gained = gains ? gains->data() : nullptr;

    nb::gil_scoped_release release;
    std::vector<std::vector<double>> lanes(n_lanes);
    run_parallel(n_lanes, n_threads, [&](size_t lane) {
        std::vector<double>& sums = lanes[lane];
        sums.assign(size + n_gains, 0.0);
        Sweeper sweeper(task, size ? sums.data() : nullptr, n_gains ? sums.data() + size : nullptr);
        sweeper.sweep_all(n * lane / n_lanes, n * (lane + 1) / n_lanes);
    });
    for (const auto& sums : lanes) {
        for (size_t k = 0; k < size; ++k) into[k] += sums[k];
        for (size_t k = 0; k < n_gains; ++k) gained[k] += sums[size + k];
    }
}

}  // namespace

void bind_cells(nb::module_& m) {
    nb::class_<CellTables>(m, "CellTables")
        .def(nb::init<Ints, std::vector<Ints>, std::vector<bool>, Flat<const int64_t>,
                      Flat<const uint64_t>, Flat<const double>, Flat<const int64_t>,
                      Flat<const uint64_t>, Flat<const double>, Flat<const double>, Flat<const double>,
                      Flat<const double>, Flat<const double>, Flat<const int64_t>, Flat<const int32_t>,
                      Flat<const double>, Ints, Ints, Flat<const int64_t>, Flat<const int32_t>>());
    const auto as_is = nb::arg().noconvert();
    const auto as_is_or_none = nb::arg().noconvert().none();
    m.def("sweep_cells", &sweep_cells, nb::arg(), as_is, as_is, as_is, as_is_or_none, as_is_or_none,
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), as_is_or_none,
          as_is_or_none, as_is_or_none, as_is_or_none, as_is_or_none, nb::arg());
}

}  // namespace robustbn
