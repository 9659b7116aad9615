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

constexpr double VOTED = 0.02;        // probability: a cell that is less likely wrong has no other state
constexpr double TOO_SMALL = 1e-150, TOO_LARGE = 1e150;  // products beyond them are scaled
constexpr size_t MOST_RATIOS = size_t(1) << 21;          // of all factors: 16 MB
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
    uint32_t commonest;  // state
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
            require(is_hashed || (is_whole && step < (UINT64_C(1) << 31) / uint64_t(n.card)), "a table is too large");
            nodes_[size_t(p)].children.emplace_back(int32_t(i), n.steps[k]);
        }
        n.n_configurations = size_t(step);
        n.first_cell = size_t(cell_start[i]);
        n.cells = cells_.data() + cell_start[i];
        n.configurations = configs_.data() + config_start[i];
        n.states = states_.data() + state_start_[i];
        n.n_rows = 0;
        for (int32_t v = 0; v < n.card; ++v) n.n_rows += n.states[v];
        n.commonest = uint32_t(std::max_element(n.states, n.states + n.card) - n.states);
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
    const void* seen;
    void* truth;
    size_t code_bytes;
    const int32_t* groups;
    const double *rates, *weights;
    double own;          // weight of a row's own count in the tables, which is taken out
    const double* calm;  // probability, by column: a right cell that is less likely wrong is not drawn
    uint64_t key, first_row;
    int n_sweeps, n_burn;
    bool asks_gains;  // else only wrong cells are counted
    double least;     // probability from which on a cell is named
    float* wrong;
};

struct Named {
    int64_t row, column;
    int32_t seen, likely;
    float probability;
};

// What a family says of one of its nodes: by cell of the family, how much likelier the cell would be if
// the node had the next state but one, two, ...; with the row's own count out of the cell it is in.
struct Factor {
    size_t family;
    std::vector<double> ratios;  // one line for each other state of the node
};

// What all rows need of a node's table.
struct Prepared {
    std::vector<double> base, own_base;  // by state: what smooths; and with the row's own count out
    std::vector<double> inverse;         // by configuration: what counts are divided by
    std::vector<Factor> factors;         // by which the node's states are told: its family and its children's
};

// Whether all that families say fits into memory: every table is held whole and not too large.
bool is_dense(const CellTables& tables) {
    size_t n = 0;
    for (size_t i = 0; i < tables.n_nodes(); ++i) {
        const Node& node = tables.node(i);
        if (node.is_hashed || node.all.empty() || node.shaped > 0) return false;
        size_t n_others = size_t(node.card);
        for (const int32_t p : node.parents) n_others += size_t(tables.node(size_t(p)).card);
        n += node.n_configurations * size_t(node.card) * n_others;
        if (n > MOST_RATIOS) return false;
    }
    return true;
}

void add_factors(const CellTables& tables, size_t i, double own, std::vector<Prepared>& nodes) {
    const Node& n = tables.node(i);
    const Prepared& at = nodes[i];
    const size_t card = size_t(n.card), n_cells = n.n_configurations * card;
    std::vector<double> here(n_cells), there(n_cells);  // a state's probability in a row's own cell, and in others
    Factor family{i, std::vector<double>((card - 1) * n_cells)};
    for (size_t k = 0; k < n.n_configurations; ++k) {
        const double *line = n.cells + k * card;
        const double own_inverse = 1 / (std::max(n.configurations[k] - own, 0.0) + n.concentration);
        for (size_t v = 0; v < card; ++v) {
            const double count = std::max(line[v] - own, 0.0) + at.own_base[v];
            here[k * card + v] = count * own_inverse;
            there[k * card + v] = (line[v] + at.own_base[v]) * at.inverse[k];
            for (size_t by = 1; by < card; ++by) {
                const size_t other = (v + by) % card;
                family.ratios[(by - 1) * n_cells + k * card + v] = (line[other] + at.base[other]) / count;
            }
        }
    }
    nodes[i].factors.push_back(std::move(family));
    for (size_t x = 0; x < n.parents.size(); ++x) {
        const size_t p = size_t(n.parents[x]), n_states = size_t(tables.node(p).card), step = size_t(n.steps[x]);
        Factor factor{i, std::vector<double>((n_states - 1) * n_cells)};
        for (size_t by = 1; by < n_states; ++by)
            for (size_t k = 0; k < n.n_configurations; ++k) {
                const size_t state = k / step % n_states, other = k + step * ((state + by) % n_states) - step * state;
                for (size_t v = 0; v < card; ++v)
                    factor.ratios[(by - 1) * n_cells + k * card + v] = there[other * card + v] / here[k * card + v];
            }
        nodes[p].factors.push_back(std::move(factor));
    }
}

std::vector<Prepared> prepare(const CellTables& tables, double own) {
    std::vector<Prepared> nodes(tables.n_nodes());
    const bool has_factors = is_dense(tables);
    for (size_t i = 0; i < nodes.size(); ++i) {
        const Node& n = tables.node(i);
        Prepared& at = nodes[i];
        const double per_row = n.concentration / (std::max(n.n_rows - own, 0.0) + n.novelty);
        for (int32_t v = 0; v < n.card; ++v) {
            at.base.push_back(per_row * (n.states[v] + n.novelty / n.card));
            at.own_base.push_back(per_row * (std::max(n.states[v] - own, 0.0) + n.novelty / n.card));
        }
        for (size_t k = 0; !n.is_hashed && k < n.n_configurations; ++k)
            at.inverse.push_back(1 / (n.configurations[k] + n.concentration));
        if (has_factors) add_factors(tables, i, own, nodes);
    }
    return nodes;
}

// The true values of rows. The probabilities of a cell's states are computed again only when a value
// that they depend on has changed; what was computed counts for all sweeps since. Where every table
// holds all its cells, they are computed first for a block of rows, node by node, the same step for all
// rows at once; rows without a cell in doubt need no more.
class Sweeper {
  public:
    Sweeper(const Task& task, const std::vector<Prepared>& prepared, double* counts, double* gains)
        : t_(task), tables_(*task.tables), prepared_(prepared), d_(task.tables->n_nodes()), counts_(counts),
          gains_(gains), row_seen_(d_), row_truth_(d_), configuration_(d_), own_configuration_(d_),
          own_state_(d_), wrong_(d_), block_(d_), cells_(d_), tried_(d_), held_(d_), votes_(d_),
          awake_(d_) {
        is_dense_ = !prepared_[0].factors.empty();
        size_t n_states = 0;
        for (size_t i = 0; i < d_; ++i) n_states += size_t(tables_.node(i).card);
        p_.resize(is_dense_ ? n_states * WIDTH : 0);
        places_.resize(p_.size());
        double* p = p_.data();
        for (size_t i = 0; is_dense_ && i < d_; ++i) {
            block_[i].p = p;
            p += size_t(tables_.node(i).card) * WIDTH;
            held_[i].resize(size_t(tables_.node(i).card));
        }
    }

    void sweep_all(size_t first, size_t end) {
        for (; first < end; first += WIDTH) {
            const size_t n = std::min(WIDTH, end - first);
            if (t_.code_bytes == 1) load<uint8_t>(first, n);
            if (t_.code_bytes == 2) load<uint16_t>(first, n);
            if (t_.code_bytes == 4) load<int32_t>(first, n);
            double excess[WIDTH];
            std::fill(excess, excess + WIDTH, is_dense_ ? -1.0 : 0.0);
            if (is_dense_) {
                for (size_t i = 0; i < d_; ++i) configure(i);
                for (size_t j = 0; j < d_; ++j) {
                    weigh_block(j);
                    conclude_block(first, n, j, excess);
                }
            }
            for (size_t r = 0; r < n; ++r)
                if (excess[r] >= 0) sweep(first + r, r);
            if (is_dense_) keep_untouched(first, n);
        }
    }

    std::vector<Named> named;

  private:
    static constexpr size_t WIDTH = 16;  // rows of a block

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
    struct Column {  // a node in the rows of a block
        uint32_t seen[WIDTH], state[WIDTH], cell[WIDTH];
        double wrong[WIDTH];  // probability; AWAKE if the cell is drawn in any case, TOUCHED once the row has it
        double scale[WIDTH];  // what makes probabilities of the other states
        double* p;  // of the present state in all rows, of the next one, ...; and round to the first
        bool is_other;  // whether a row has another true state than the recorded one
    };
    static constexpr double AWAKE = 2.0, TOUCHED = -1.0;

    // --- a block of rows ---

    template <class Code>
    void load(size_t first, size_t n_rows) {
        const Code* seen = static_cast<const Code*>(t_.seen) + first * d_;
        const Code* truth = static_cast<const Code*>(t_.truth) + first * d_;
        uint32_t n_unknown = 0;
        for (size_t i = 0; i < d_; ++i) {
            Column& at = block_[i];
            const uint32_t card = uint32_t(tables_.node(i).card), commonest = tables_.node(i).commonest;
            uint32_t other = 0;
            for (size_t r = 0; r < WIDTH; ++r) {
                const size_t k = (r < n_rows ? r : 0) * d_ + i;
                const uint32_t shown = uint32_t(seen[k]), begun = uint32_t(truth[k]);
                n_unknown |= uint32_t(shown > card) | uint32_t(begun > card);
                at.seen[r] = shown;
                at.state[r] = begun < card ? begun : commonest;
                other |= shown ^ at.state[r];
            }
            at.is_other = other;
        }
        require(!n_unknown, "no such state");
    }

    void configure(size_t i) {
        const Node& n = tables_.node(i);
        Column& at = block_[i];
        const uint32_t card = uint32_t(n.card);
        for (size_t r = 0; r < WIDTH; ++r) at.cell[r] = at.state[r];
        for (size_t k = 0; k < n.parents.size(); ++k) {
            const uint32_t *state = block_[size_t(n.parents[k])].state, step = uint32_t(n.steps[k]) * card;
            for (size_t r = 0; r < WIDTH; ++r) at.cell[r] += step * state[r];
        }
    }

    // Compute what the tables say of one cell's states in all rows of a block.
    void weigh_block(size_t j) {
        Column& at = block_[j];
        const size_t card = size_t(tables_.node(j).card);
        std::fill(at.p, at.p + card * WIDTH, 1.0);
        size_t n_done = 0;
        for (const Factor& factor : prepared_[j].factors) {
            const uint32_t* cell = block_[factor.family].cell;
            const double* ratios = factor.ratios.data();
            const size_t n_cells = factor.ratios.size() / std::max(card - 1, size_t(1));
            for (size_t by = 1; by < card; ++by, ratios += n_cells)
                for (size_t r = 0; r < WIDTH; ++r) at.p[by * WIDTH + r] *= ratios[cell[r]];
            if (++n_done % 8) continue;
            for (size_t r = 0; r < WIDTH; ++r) rescale(at.p + r, card, WIDTH);
        }
    }

    // Find how likely one cell of each row is to be wrong; `excess`: by how much, beyond what is calm, any is.
    void conclude_block(size_t first, size_t n_rows, size_t j, double* excess) {
        Column& at = block_[j];
        const size_t card = size_t(tables_.node(j).card);
        double others[WIDTH], rate[WIDTH];
        for (size_t r = 0; r < WIDTH; ++r) rate[r] = t_.rates[j];
        for (size_t r = 0; t_.groups && r < n_rows; ++r) rate[r] = rates_of(first + r)[j];
        std::fill(others, others + WIDTH, 0.0);
        for (size_t by = 1; by < card; ++by)
            for (size_t r = 0; r < WIDTH; ++r) others[r] += at.p[by * WIDTH + r];
        const double share = 1.0 / double(card), calm = t_.calm[j];
        for (size_t r = 0; r < WIDTH; ++r) {
            const double error = rate[r] * share;
            at.scale[r] = error / (error * others[r] + (1 - rate[r] + error) * at.p[r]);
            at.wrong[r] = at.scale[r] * others[r];
        }
        for (size_t r = 0; at.is_other && r < WIDTH; ++r)
            if (at.state[r] != at.seen[r]) at.wrong[r] = AWAKE;
        for (size_t r = 0; r < WIDTH; ++r) excess[r] = std::max(excess[r], at.wrong[r] - calm);
    }

    // Count the cells that no draw has touched.
    void keep_untouched(size_t first, size_t n_rows) {
        double given[WIDTH];
        for (size_t r = 0; r < WIDTH; ++r) given[r] = r >= n_rows ? 0.0 : t_.weights ? t_.weights[first + r] : 1.0;
        if (counts_) count_untouched(given);
        for (size_t j = 0; j < d_; ++j) {
            const Column& at = block_[j];
            const double share = 1.0 / tables_.node(j).card;
            double wrong = 0, gain = 0;
            for (size_t r = 0; r < WIDTH; ++r) wrong += given[r] * std::max(at.wrong[r], 0.0);
            for (size_t r = 0; t_.asks_gains && r < n_rows; ++r) {
                const double rate = rates_of(first + r)[j];
                if (at.wrong[r] >= 0) gain += given[r] * std::log((1 - rate + rate * share) / (1 - at.wrong[r]));
            }
            if (gains_) gains_[j] += gain;
            if (gains_) gains_[d_ + j] += wrong;
            for (size_t r = 0; t_.wrong && r < n_rows; ++r)
                if (at.wrong[r] >= 0) t_.wrong[(first + r) * d_ + j] = float(at.wrong[r]);
        }
    }

    void count_untouched(const double* given) {
        for (size_t j = 0; j < d_; ++j) {
            const Column& at = block_[j];
            const int32_t card = tables_.node(j).card, first = int32_t(tables_.node(j).first_cell);
            int32_t* places = places_.data() + (at.p - p_.data());
            double weight[WIDTH], scale[WIDTH];
            for (size_t r = 0; r < WIDTH; ++r) {
                weight[r] = at.wrong[r] < 0 ? 0.0 : given[r];
                scale[r] = weight[r] * at.scale[r];
                at.p[r] = weight[r] * (1 - at.wrong[r]);
                places[r] = first + int32_t(at.cell[r]);
            }
            for (int32_t by = 1; by < card; ++by)
                for (size_t r = 0; r < WIDTH; ++r) {
                    const size_t k = size_t(by) * WIDTH + r;
                    at.p[k] *= scale[r];
                    places[k] = places[r] + by - (int32_t(at.state[r]) + by < card ? 0 : card);
                }
        }
        // In turns: a sum waits for the one before if both are of the same cell.
        const size_t n = p_.size(), n_turns = n / (4 * WIDTH);
        for (size_t line = 0; line < n_turns; ++line) {
            const int32_t* places = places_.data() + line * 4 * WIDTH;
            const double* p = p_.data() + line * 4 * WIDTH;
            for (size_t r = 0; r < WIDTH; ++r)
                for (size_t k = r; k < 4 * WIDTH; k += WIDTH) counts_[places[k]] += p[k];
        }
        for (size_t k = n_turns * 4 * WIDTH; k < n; ++k) counts_[places_[k]] += p_[k];
    }

    // Keep products of n factors within what numbers can hold.
    static void rescale(double* p, size_t n, size_t stride) {
        double largest = p[0];
        for (size_t k = 1; k < n; ++k) largest = std::max(largest, p[k * stride]);
        if (largest > TOO_SMALL && largest < TOO_LARGE) return;
        for (size_t k = 0; k < n; ++k) p[k * stride] /= std::max(largest, 1e-300);
    }

    const double* rates_of(size_t row) const {
        return t_.rates + (t_.groups ? size_t(t_.groups[row]) * d_ : 0);
    }

    // --- a row ---

    void sweep(size_t row, size_t r) {
        r_ = r;
        rates_ = rates_of(row);
        n_kept_ = 0;
        weight_ = (t_.weights ? t_.weights[row] : 1.0) / (t_.n_sweeps - t_.n_burn);
        for (size_t i = 0; i < d_; ++i) {
            const Column& at = block_[i];
            row_seen_[i] = int32_t(at.seen[r]);
            own_state_[i] = row_truth_[i] = int32_t(at.state[r]);
            own_configuration_[i] = configuration_[i] = at.cell[r] / uint32_t(tables_.node(i).card);
            awake_[i] = !is_dense_ || at.wrong[r] >= t_.calm[i];
        }
        touched_.clear();
        for (size_t i = 0; i < d_; ++i) {
            if (!is_dense_) own_configuration_[i] = configuration_[i] = tables_.configuration(i, row_truth_.data());
            if (awake_[i]) touch(i);
        }
        bool is_quiet = false;
        for (int s = 0; s < t_.n_sweeps && !is_quiet; ++s) {
            is_quiet = true;
            for (size_t j = 0; j < d_; ++j) {
                if (!awake_[j]) continue;
                awake_[j] = !visit(j, row, s);
                is_quiet &= !awake_[j];
            }
            n_kept_ += is_quiet ? t_.n_sweeps - std::max(s, t_.n_burn) : int(s >= t_.n_burn);
        }
        for (const size_t j : touched_) keep(j);
        std::sort(touched_.begin(), touched_.end());
        for (const size_t j : touched_) conclude(row, j);
        if (t_.code_bytes == 1) store<uint8_t>(row);
        if (t_.code_bytes == 2) store<uint16_t>(row);
        if (t_.code_bytes == 4) store<int32_t>(row);
    }

    // Take what is known of a cell from the block: from now on it is the row's.
    void touch(size_t i) {
        Cell& cell = cells_[i];
        cell.is_stale = !is_dense_;
        cell.since = 0;
        wrong_[i] = 0;
        touched_.push_back(i);
        if (!is_dense_) return;
        Column& at = block_[i];
        const size_t card = held_[i].size();
        at.wrong[r_] = TOUCHED;
        for (size_t by = 0; by < card; ++by) held_[i][(at.state[r_] + by) % card] = at.p[by * WIDTH + r_];
        cell.configuration = own_configuration_[i];
        cell.states = &tables_.node(i).all;
        cell.p = held_[i].data();
        conclude_cell(i, cell, row_seen_[i], rates_[i]);
    }

    template <class Code>
    void store(size_t row) const {
        Code* truth = static_cast<Code*>(t_.truth) + row * d_;
        for (const size_t j : touched_) truth[j] = Code(row_truth_[j]);
    }

    // Draw a cell; return whether it stays as it is recorded, surely enough.
    bool visit(size_t j, size_t row, int s) {
        Cell& cell = cells_[j];
        if (cell.is_stale) {
            keep(j);
            compute(j);
        }
        if (cell.is_sure && row_truth_[j] == row_seen_[j]) return true;
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
        const int64_t by = int64_t(state) - int64_t(row_truth_[j]);
        if (!by) return;
        row_truth_[j] = state;
        for (const auto& [i, step] : tables_.node(j).children) configuration_[size_t(i)] += step * uint64_t(by);
        for (const int32_t i : tables_.node(j).blanket) {
            if (is_dense_ && block_[size_t(i)].wrong[r_] >= 0) touch(size_t(i));
            cells_[size_t(i)].is_stale = true;
            awake_[size_t(i)] = 1;
        }
        cells_[j].is_stale = !tables_.tries_all(j);  // its true state is among those that are tried
    }

    // Compute the probabilities of a cell's states given all others.
    void compute(size_t j) {
        Cell& cell = cells_[j];
        cell.states = &tables_.list_states(j, row_seen_[j], row_truth_.data(), tried_[j]);
        held_[j].resize(cell.states->size());
        cell.p = held_[j].data();
        weigh(j, *cell.states, cell.p);
        cell.configuration = configuration_[j];
        cell.since = n_kept_;
        conclude_cell(j, cell, row_seen_[j], rates_[j]);
    }

    // Turn what the tables say of a cell's states into probabilities, by what is recorded.
    void conclude_cell(size_t j, Cell& cell, int32_t seen, double rate) const {
        const Node& n = tables_.node(j);
        const Ints& states = *cell.states;
        double sum = 0, at_seen = 0, alone = 1;
        for (size_t k = 0; seen < n.card && k < states.size(); ++k) {
            double& p = cell.p[k];
            const double error = n.shaped <= 0 ? rate / n.card : rate * tables_.error(j, seen, states[k]);
            if (states[k] == seen) {
                alone = p;
                at_seen = p *= error + 1 - rate;
            } else {
                p *= error;
            }
        }
        for (size_t k = 0; k < states.size(); ++k) sum += cell.p[k];
        const double scale = 1 / sum;
        for (size_t k = 0; k < states.size(); ++k) cell.p[k] *= scale;
        cell.gain = t_.asks_gains && seen < n.card ? std::log(sum / alone) : 0.0;
        cell.at_seen = at_seen / sum;  // exactly 1 where nothing else can be
        cell.is_stale = false;
        cell.is_sure = 1 - cell.at_seen < t_.calm[j];
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
            const bool is_out = is_own && v == own_state_[j];
            p[k] = (is_out ? std::max(count - t_.own, 0.0) : count) + base(j, v);
        }
        size_t n_done = 0;
        for (const auto& [i, step] : n.children) {
            const Node& child = tables_.node(size_t(i));
            const uint64_t rest = configuration_[size_t(i)] - step * uint64_t(row_truth_[j]);
            const double more = base(size_t(i), row_truth_[size_t(i)]), *inverse = prepared_[size_t(i)].inverse.data();
            for (size_t k = 0; k < n_tried; ++k) {
                const uint64_t at = rest + step * uint64_t(states[k]);
                if (child.is_hashed || at == own_configuration_[size_t(i)])
                    p[k] *= in_child(size_t(i), at);
                else
                    p[k] *= (tables_.cell(child, at, row_truth_[size_t(i)]) + more) * inverse[at];
            }
            if (++n_done % 8 == 0) rescale(p, n_tried, 1);
        }
    }

    // The probability of a child's present state in one of its configurations.
    double in_child(size_t i, uint64_t at) const {
        const Node& child = tables_.node(i);
        const double own = at == own_configuration_[i] ? t_.own : 0.0;
        double count = tables_.cell(child, at, row_truth_[i]);
        if (row_truth_[i] == own_state_[i]) count = std::max(count - own, 0.0);
        return (count + base(i, row_truth_[i])) / (std::max(tables_.total(child, at) - own, 0.0) + child.concentration);
    }

    // How often a state would be seen where nothing was: by its share of all rows, smoothed.
    double base(size_t i, int32_t v) const {
        return v == own_state_[i] ? prepared_[i].own_base[size_t(v)] : prepared_[i].base[size_t(v)];
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
            for (size_t k = 0; k < n_tried; ++k)
                line[(*cell.states)[k]] += times * weight_ * cell.p[k];
        }
        if (t_.least <= 1 && row_seen_[j] < n.card && 1 - cell.at_seen >= VOTED)
            for (size_t k = 0; k < n_tried; ++k) vote(j, (*cell.states)[k], times * cell.p[k]);
        if (!gains_) return;
        gains_[j] += times * weight_ * cell.gain;
        if (row_seen_[j] < n.card) gains_[d_ + j] += times * weight_ * (1 - cell.at_seen);
    }

    void vote(size_t j, int32_t state, double p) {
        for (Vote& each : votes_[j])
            if (each.state == state) {
                each.sum += p;
                return;
            }
        votes_[j].push_back({state, p});
    }

    void conclude(size_t row, size_t j) {
        if (t_.wrong) t_.wrong[row * d_ + j] = float(wrong_[j] / n_kept_);
        Vote best{row_seen_[j], 0.0};
        for (const Vote& each : votes_[j]) {
            const bool is_first = each.sum == best.sum && each.state < best.state;
            if (each.state != row_seen_[j] && (each.sum > best.sum || is_first)) best = each;
        }
        const double p = best.sum / n_kept_;
        if (best.state != row_seen_[j] && p >= t_.least)
            named.push_back({int64_t(row), int64_t(j), row_seen_[j], best.state, float(p)});
        votes_[j].clear();
    }

    const Task& t_;
    const CellTables& tables_;
    const std::vector<Prepared>& prepared_;
    size_t d_;
    double *counts_, *gains_;
    bool is_dense_ = true;
    int n_kept_ = 0;
    double weight_ = 1.0;  // of the row, for each kept sweep
    const double* rates_ = nullptr;
    Ints row_seen_, row_truth_;
    std::vector<uint64_t> configuration_, own_configuration_;
    Ints own_state_;
    std::vector<double> wrong_;
    std::vector<size_t> touched_;  // cells of the row that are no longer as the block has them
    size_t r_ = 0;                 // the row, in the block
    std::vector<Column> block_;
    std::vector<Cell> cells_;  // of the row
    std::vector<double> p_;
    Ints places_;  // of the cells that they count for
    std::vector<Ints> tried_;                // states of a row's cells, where not all are tried,
    std::vector<std::vector<double>> held_;  // and the probabilities of states
    std::vector<std::vector<Vote>> votes_;
    std::vector<char> awake_;  // cells that are not known to stay as they are
};

template <class T, class Get>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_array(const std::vector<std::vector<Named>>& parts, Get get) {
    size_t n = 0;
    for (const auto& part : parts) n += part.size();
    T* values = new T[n];
    nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    for (const auto& part : parts)
        for (const Named& each : part) *values++ = get(each);
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(static_cast<T*>(owner.data()), {n}, owner);
}

// Sweep rows; return rows, columns, recorded and likely states and probabilities of the cells that are
// likely wrong. A true value that is missing begins as the commonest.
template <class Code>
nb::tuple sweep_cells(const CellTables& tables, Matrix<const Code> seen, Matrix<Code> truth,
                      Matrix<const double> rates, std::optional<Flat<const int32_t>> groups,
                      std::optional<Flat<const double>> weights, double own, Flat<const double> calm,
                      uint64_t key, uint64_t first_row, int n_sweeps, int n_burn, bool asks_gains,
                      double least, std::optional<Matrix<float>> wrong, std::optional<Flat<double>> counts,
                      std::optional<Flat<double>> gains, int n_threads) {
    const size_t n = seen.shape(0), d = tables.n_nodes();
    const auto fits = [&](const auto& array) { return array.shape(0) == n && array.shape(1) == d; };
    require_aligned(seen, truth, rates, groups, weights, calm, wrong, counts, gains);
    require(fits(seen) && fits(truth) && (!wrong || fits(*wrong)), "one line a row, one column a node");
    require(rates.shape(1) == d && rates.shape(0) >= 1 && (!groups || groups->shape(0) == n) &&
                calm.shape(0) == d && (!weights || weights->shape(0) == n) &&
                (!gains || gains->shape(0) == 2 * d),
            "shapes differ");
    require(0 <= n_burn && n_burn < n_sweeps && n_sweeps <= 1024, "1 to 1024 sweeps, of which some count");
    size_t n_cells = 0;
    for (size_t i = 0; i < d; ++i)
        if (const Node& node = tables.node(i); !node.is_hashed)
            n_cells = std::max(n_cells, node.first_cell + node.n_configurations * size_t(node.card));
    require(!counts || counts->shape(0) >= n_cells, "one count a cell");
    for (size_t k = 0; groups && k < n; ++k)
        require(groups->data()[k] >= 0 && size_t(groups->data()[k]) < rates.shape(0), "no such group");
    const Task task{&tables, seen.data(), truth.data(), sizeof(Code), groups ? groups->data() : nullptr,
                    rates.data(), weights ? weights->data() : nullptr, own, calm.data(), key, first_row,
                    n_sweeps, n_burn, asks_gains, least, wrong ? wrong->data() : nullptr};
    const size_t size = counts ? n_cells : 0, n_gains = gains ? 2 * d : 0;
    const size_t most = std::min(MOST_LANES, LANE_ENTRIES / (size + n_gains + 1));
    const size_t n_lanes = std::max(size_t(1), std::min(most, n));
    double* into = counts ? counts->data() : nullptr;
    double* gained = gains ? gains->data() : nullptr;
    std::vector<std::vector<Named>> named(n_lanes);
    {
        nb::gil_scoped_release release;
        const std::vector<Prepared> prepared = prepare(tables, own);
        std::vector<std::vector<double>> lanes(n_lanes);
        run_parallel(n_lanes, n_threads, [&](size_t lane) {
            std::vector<double>& sums = lanes[lane];
            sums.assign(size + n_gains, 0.0);
            double* at = sums.data();
            Sweeper sweeper(task, prepared, size ? at : nullptr, n_gains ? at + size : nullptr);
            sweeper.sweep_all(n * lane / n_lanes, n * (lane + 1) / n_lanes);
            named[lane] = std::move(sweeper.named);
        });
        for (const auto& sums : lanes) {
            for (size_t k = 0; k < size; ++k) into[k] += sums[k];
            for (size_t k = 0; k < n_gains; ++k) gained[k] += sums[size + k];
        }
    }
    return nb::make_tuple(to_array<int64_t>(named, [](const Named& x) { return x.row; }),
                          to_array<int64_t>(named, [](const Named& x) { return x.column; }),
                          to_array<int32_t>(named, [](const Named& x) { return x.seen; }),
                          to_array<int32_t>(named, [](const Named& x) { return x.likely; }),
                          to_array<float>(named, [](const Named& x) { return x.probability; }));
}

template <class Code>
void bind_sweep(nb::module_& m) {
    const auto as_is = nb::arg().noconvert();
    const auto as_is_or_none = nb::arg().noconvert().none();
    m.def("sweep_cells", &sweep_cells<Code>, nb::arg(), as_is, as_is, as_is, as_is_or_none, as_is_or_none,
          nb::arg(), as_is, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          as_is_or_none, as_is_or_none, as_is_or_none, nb::arg());
}

}  // namespace

void bind_cells(nb::module_& m) {
    nb::class_<CellTables>(m, "CellTables")
        .def(nb::init<Ints, std::vector<Ints>, std::vector<bool>, Flat<const int64_t>,
                      Flat<const uint64_t>, Flat<const double>, Flat<const int64_t>,
                      Flat<const uint64_t>, Flat<const double>, Flat<const double>, Flat<const double>,
                      Flat<const double>, Flat<const double>, Flat<const int64_t>, Flat<const int32_t>,
                      Flat<const double>, Ints, Ints, Flat<const int64_t>, Flat<const int32_t>>());
    bind_sweep<uint8_t>(m);
    bind_sweep<uint16_t>(m);
    bind_sweep<int32_t>(m);
}

}  // namespace robustbn
