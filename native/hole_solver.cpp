#include "hole_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace robustbn {

namespace {

constexpr size_t MOST_ENUMERATED = 64;  // joint states: beyond, buckets are cheaper
constexpr double WORTH_AN_ORDER = 4096;  // entries of all tables: more, and a pattern's own is tried
constexpr double MOST_TABLES = 16;  // times the largest: all tables of a component together
constexpr double SMALL = 1e-30;  // products below are scaled up; doubles end at 1e-308
constexpr int SCALED_EVERY = 4;  // items
constexpr int N_BATCHES = 8;     // of sweeps, whose spread gives the standard error

using Loop = Program::Loop;

// table[a] = source[b] (first) or table[a] *= source[b], for every entry a of the table, where b is
// the entry of the item with the same states.
template <bool is_first>
void multiply(double* table, const double* source, const Loop* loops, size_t n_loops) {
    if (n_loops == 0) {
        table[0] = is_first ? source[0] : table[0] * source[0];
        return;
    }
    const Loop loop = loops[0];
    if (n_loops > 1) {
        for (uint32_t i = 0; i < loop.size; ++i)
            multiply<is_first>(table + size_t(i) * loop.table_step,
                               source + size_t(i) * loop.item_step, loops + 1, n_loops - 1);
    } else if (loop.item_step == 0) {
        for (uint32_t i = 0; i < loop.size; ++i) table[i] = is_first ? *source : table[i] * *source;
    } else {
        for (uint32_t i = 0; i < loop.size; ++i)
            table[i] = is_first ? source[i] : table[i] * source[i];
    }
}

// out[b] += table[a]: the sums of a table over the axes that an item does not have.
void reduce(const double* table, double* out, const Loop* loops, size_t n_loops) {
    if (n_loops == 0) {
        out[0] += table[0];
        return;
    }
    const Loop loop = loops[0];
    if (n_loops > 1) {
        for (uint32_t i = 0; i < loop.size; ++i)
            reduce(table + size_t(i) * loop.table_step, out + size_t(i) * loop.item_step, loops + 1,
                   n_loops - 1);
    } else if (loop.item_step == 0) {
        double sum = 0;
        for (uint32_t i = 0; i < loop.size; ++i) sum += table[i];
        *out += sum;
    } else {
        for (uint32_t i = 0; i < loop.size; ++i) out[i] += table[i];
    }
}

double largest_of(const double* values, size_t n) {
    double largest = 0;
    for (size_t i = 0; i < n; ++i) largest = std::max(largest, values[i]);
    return largest;
}

// By division: the inverse of the smallest doubles cannot be held.
void divide(double* values, size_t n, double divisor) {
    for (size_t i = 0; i < n; ++i) values[i] /= divisor;
}

// Adds logarithms by multiplying, as long as the product can be held.
class LogSum {
  public:
    void add(double factor) {
        product_ *= factor;
        if (product_ < 1e-150 || product_ > 1e150) {
            sum_ += std::log(product_);
            product_ = 1;
        }
    }
    double value() const { return sum_ + std::log(product_); }

  private:
    double product_ = 1, sum_ = 0;
};

double next_uniform(uint64_t& state) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

// ---- programs -----------------------------------------------------------------------------------

Program::Program(const Web& web, const Pattern& pattern, const Limits& limits) {
    number_holes(web, pattern, pattern.columns);
    double states = 1;
    for (int32_t card : cards) states *= card;
    if (columns.size() == 1 || states <= double(MOST_ENUMERATED)) {
        kind = columns.size() == 1 ? Kind::alone : Kind::joint;
        joint = size_t(states);
        cost = 10 + 2 * states * double(factors.size());
        return;
    }
    choose_order(web, pattern, limits);
}

void Program::number_holes(const Web& web, const Pattern& pattern, const Ints& in_order) {
    columns = in_order;
    cards.clear();
    axes.clear();
    factors.clear();
    offsets.clear();
    n_local = 0;
    std::vector<int32_t> number(web.cards.size(), -1);
    for (size_t i = 0; i < columns.size(); ++i) {
        number[columns[i]] = int32_t(i);
        cards.push_back(web.cards[columns[i]]);
    }
    for (int32_t f : pattern.families) {
        const Family& family = web.families[f];
        const uint32_t first_axis = uint32_t(axes.size());
        for (size_t k = 0; k < family.columns.size(); ++k)
            if (number[family.columns[k]] >= 0)
                axes.push_back({number[family.columns[k]], family.strides[k], 0});
        std::sort(axes.begin() + first_axis, axes.end(),
                  [](const Axis& a, const Axis& b) { return a.hole < b.hole; });
        uint32_t size = 1;
        for (size_t k = axes.size(); k-- > first_axis;) {
            axes[k].local_stride = int32_t(size);
            size *= uint32_t(cards[axes[k].hole]);
        }
        const uint32_t first_offset = uint32_t(offsets.size());
        offsets.push_back(0);
        for (size_t k = axes.size(); k-- > first_axis;) {  // the innermost axis varies fastest
            const size_t inner = offsets.size() - first_offset;
            for (int32_t s = 1; s < cards[axes[k].hole]; ++s)
                for (size_t e = 0; e < inner; ++e)
                    offsets.push_back(offsets[first_offset + e] + uint32_t(s * axes[k].cell_stride));
        }
        factors.push_back({first_axis, uint32_t(axes.size()) - first_axis, uint32_t(n_local), size,
                           first_offset});
        n_local += size;
    }
}

void Program::choose_order(const Web& web, const Pattern& pattern, const Limits& limits) {
    Shape shape = shape_of_buckets();
    if (shape.total > WORTH_AN_ORDER) {
        std::vector<Ints> neighbours(columns.size());
        for (const Factor& factor : factors)
            for (uint32_t a = 0; a < factor.n_axes; ++a)
                for (uint32_t b = 0; b < factor.n_axes; ++b)
                    if (a != b)
                        neighbours[axes[factor.first_axis + a].hole].push_back(
                            axes[factor.first_axis + b].hole);
        Ints in_order;
        for (int32_t i : elimination_order(neighbours, cards)) in_order.push_back(columns[i]);
        const Ints before = columns;
        number_holes(web, pattern, in_order);
        Shape own = shape_of_buckets();
        if (own.total < shape.total) shape = std::move(own);
        else number_holes(web, pattern, before);
    }
    if (shape.largest > double(limits.largest_table) ||
        shape.total > MOST_TABLES * double(limits.largest_table)) {
        kind = Kind::sampled;
        workspace = n_local;
        cost = 1.25 * limits.n_sweeps * double(n_local) * 4;
        return;
    }
    kind = Kind::tree;
    build_buckets(shape);
}

// A bucket's scope: its hole, and all later holes that its factors and earlier messages name.
Program::Shape Program::shape_of_buckets() const {
    const size_t n = columns.size();
    Shape shape;
    shape.scopes.resize(n);
    for (const Factor& factor : factors) {
        Ints& scope = shape.scopes[axes[factor.first_axis].hole];
        for (uint32_t a = 0; a < factor.n_axes; ++a) scope.push_back(axes[factor.first_axis + a].hole);
    }
    for (size_t v = 0; v < n; ++v) {
        Ints& scope = shape.scopes[v];
        scope.push_back(int32_t(v));
        std::sort(scope.begin(), scope.end());
        scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
        double size = 1;
        for (int32_t hole : scope) size *= cards[hole];
        shape.largest = std::max(shape.largest, size);
        shape.total += size;
        if (scope.size() > 1) {
            Ints& next = shape.scopes[scope[1]];
            next.insert(next.end(), scope.begin() + 1, scope.end());
        }
    }
    return shape;
}

void Program::build_buckets(const Shape& shape) {
    const size_t n = columns.size();
    workspace = n_local;
    buckets.resize(n);
    std::vector<Ints> factors_of(n), children_of(n);
    for (size_t f = 0; f < factors.size(); ++f)
        factors_of[axes[factors[f].first_axis].hole].push_back(int32_t(f));
    for (size_t v = 0; v < n; ++v) {
        const Ints& scope = shape.scopes[v];
        size_t size = 1;
        for (int32_t hole : scope) size *= size_t(cards[hole]);
        Bucket& bucket = buckets[v];
        bucket.table = uint32_t(workspace);
        bucket.message = uint32_t(workspace + size);
        bucket.message_size = uint32_t(size / size_t(cards[v]));
        workspace += size + bucket.message_size;
        bucket.first_item = uint32_t(items.size());
        bucket.parent = scope.size() > 1 ? scope[1] : -1;
        for (int32_t f : factors_of[v]) {
            Ints holes;
            for (uint32_t a = 0; a < factors[f].n_axes; ++a)
                holes.push_back(axes[factors[f].first_axis + a].hole);
            add_item(factors[f].first, holes, scope, f);
        }
        for (int32_t child : children_of[v]) {
            const Ints& from = shape.scopes[child];
            buckets[child].parent_item = uint32_t(items.size());
            add_item(buckets[child].message, Ints(from.begin() + 1, from.end()), scope, -1);
        }
        bucket.n_items = uint32_t(items.size()) - bucket.first_item;
        if (bucket.parent >= 0) children_of[bucket.parent].push_back(int32_t(v));
        cost += double(size) * (2 * bucket.n_items + 4) + 20 * bucket.n_items;
    }
    loops.shrink_to_fit();
    items.shrink_to_fit();
}

void Program::add_item(uint32_t source, const Ints& item_holes, const Ints& table_holes,
                       int32_t factor) {
    Item item{source, uint32_t(loops.size()), 0, factor};
    uint32_t table_step = 1, item_step = 1;
    std::vector<Loop> inner_first;
    size_t left = item_holes.size();
    for (size_t k = table_holes.size(); k-- > 0;) {
        const uint32_t card = uint32_t(cards[table_holes[k]]);
        const bool is_shared = left > 0 && item_holes[left - 1] == table_holes[k];
        const Loop loop{card, table_step, is_shared ? item_step : 0};
        table_step *= card;
        if (is_shared) {
            item_step *= card;
            --left;
        }
        if (card == 1) continue;
        if (!inner_first.empty() &&
            loop.item_step == inner_first.back().item_step * inner_first.back().size)
            inner_first.back().size *= card;
        else
            inner_first.push_back(loop);
    }
    loops.insert(loops.end(), inner_first.rbegin(), inner_first.rend());
    item.n_loops = uint32_t(inner_first.size());
    items.push_back(item);
}

size_t Program::bytes() const {
    return sizeof(Program) + 4 * (columns.capacity() + cards.capacity() + offsets.capacity()) +
           axes.capacity() * sizeof(Axis) + factors.capacity() * sizeof(Factor) +
           loops.capacity() * sizeof(Loop) + items.capacity() * sizeof(Item) +
           buckets.capacity() * sizeof(Bucket);
}

// ---- answers ------------------------------------------------------------------------------------

Solver::Solver(const double* q, const Limits& limits) : q_(q), limits_(limits) {}

void Solver::load(const Program& program) {
    program_ = &program;
    if (space_.size() < program.workspace) space_.resize(program.workspace);
    if (program.kind == Kind::alone || program.kind == Kind::joint) {
        if (p_.size() < program.joint) p_.resize(program.joint);
    }
    if (program.kind == Kind::joint) {
        // cells of each joint state, the last hole's states varying fastest
        joint_offsets_.assign(program.factors.size() * program.joint, 0);
        for (size_t f = 0; f < program.factors.size(); ++f) {
            uint32_t* offsets = joint_offsets_.data() + f * program.joint;
            const Program::Factor& factor = program.factors[f];
            size_t inner = 1;
            for (size_t h = program.columns.size(); h-- > 0;) {
                uint32_t stride = 0;
                for (uint32_t a = 0; a < factor.n_axes; ++a)
                    if (program.axes[factor.first_axis + a].hole == int32_t(h))
                        stride = uint32_t(program.axes[factor.first_axis + a].cell_stride);
                const size_t card = size_t(program.cards[h]);
                for (size_t s = 1; s < card; ++s)
                    for (size_t e = 0; e < inner; ++e)
                        offsets[s * inner + e] = offsets[e] + uint32_t(s) * stride;
                inner *= card;
            }
        }
    }
    if (program.kind == Kind::sampled) {
        touches_.assign(program.columns.size(), {});
        share_of_factor_.assign(program.factors.size(), 0);
        for (size_t f = 0; f < program.factors.size(); ++f) {
            const Program::Factor& factor = program.factors[f];
            share_of_factor_[f] = 1.0 / factor.n_axes;
            for (uint32_t a = 0; a < factor.n_axes; ++a) {
                const Program::Axis& axis = program.axes[factor.first_axis + a];
                touches_[axis.hole].push_back(
                    {uint32_t(f), uint32_t(axis.cell_stride), uint32_t(axis.local_stride)});
            }
        }
    }
}

double Solver::answer(const uint32_t* bases, double weight, uint64_t seed, double* counts,
                      double* variance) {
    switch (program_->kind) {
        case Kind::alone: return answer_alone(bases, weight, counts);
        case Kind::joint: return answer_joint(bases, weight, counts);
        case Kind::tree: return answer_tree(bases, weight, counts);
        default: return answer_sampled(bases, weight, seed, counts, variance);
    }
}

double Solver::normalise(const uint32_t* bases) {
    const size_t n = program_->joint;
    double sum = 0;
    for (size_t s = 0; s < n; ++s) sum += p_[s];
    if (sum < SMALL) return enumerate_logs(bases);
    for (size_t s = 0; s < n; ++s) p_[s] /= sum;
    return std::log(sum);
}

double Solver::answer_alone(const uint32_t* bases, double weight, double* counts) {
    const size_t n_factors = program_->factors.size(), n = program_->joint;
    const Program::Axis* axes = program_->axes.data();
    double* p = p_.data();
    for (size_t s = 0; s < n; ++s) p[s] = q_[bases[0] + s * uint32_t(axes[0].cell_stride)];
    for (size_t f = 1; f < n_factors; ++f)
        for (size_t s = 0; s < n; ++s) p[s] *= q_[bases[f] + s * uint32_t(axes[f].cell_stride)];
    const double log_sum = normalise(bases);
    if (std::isinf(log_sum)) return log_sum;
    if (counts)
        for (size_t f = 0; f < n_factors; ++f)
            for (size_t s = 0; s < n; ++s)
                counts[bases[f] + s * uint32_t(axes[f].cell_stride)] += weight * p[s];
    return log_sum;
}

double Solver::answer_joint(const uint32_t* bases, double weight, double* counts) {
    const size_t n_factors = program_->factors.size(), n = program_->joint;
    double* p = p_.data();
    for (size_t f = 0; f < n_factors; ++f) {
        const uint32_t* offsets = joint_offsets_.data() + f * n;
        const double* q = q_ + bases[f];
        if (f == 0)
            for (size_t s = 0; s < n; ++s) p[s] = q[offsets[s]];
        else
            for (size_t s = 0; s < n; ++s) p[s] *= q[offsets[s]];
    }
    const double log_sum = normalise(bases);
    if (std::isinf(log_sum)) return log_sum;
    if (counts)
        for (size_t f = 0; f < n_factors; ++f) {
            const uint32_t* offsets = joint_offsets_.data() + f * n;
            double* c = counts + bases[f];
            for (size_t s = 0; s < n; ++s) c[offsets[s]] += weight * p[s];
        }
    return log_sum;
}

// The same in logarithms, where products are too small to be held; p sums to 1.
double Solver::enumerate_logs(const uint32_t* bases) {
    const size_t n = program_->joint;
    double* p = p_.data();
    std::fill_n(p, n, 0.0);
    for (size_t f = 0; f < program_->factors.size(); ++f)
        for (size_t s = 0; s < n; ++s) {
            const size_t offset = program_->kind == Kind::alone
                                      ? s * uint32_t(program_->axes[f].cell_stride)
                                      : joint_offsets_[f * n + s];
            p[s] += std::log(q_[bases[f] + offset]);
        }
    const double largest = *std::max_element(p, p + n);
    if (std::isinf(largest)) return largest;
    double sum = 0;
    for (size_t s = 0; s < n; ++s) sum += p[s] = std::exp(p[s] - largest);
    for (size_t s = 0; s < n; ++s) p[s] /= sum;
    return largest + std::log(sum);
}

double Solver::answer_tree(const uint32_t* bases, double weight, double* counts) {
    double log_sum = 0;
    is_possible_ = send_messages(bases, log_sum);
    if (!is_possible_) return -std::numeric_limits<double>::infinity();
    receive_beliefs();
    if (!counts) return log_sum;
    double* space = space_.data();
    for (const Program::Bucket& bucket : program_->buckets)
        for (uint32_t i = bucket.first_item; i < bucket.first_item + bucket.n_items; ++i) {
            const Program::Item& item = program_->items[i];
            if (item.factor < 0) continue;
            const Program::Factor& factor = program_->factors[item.factor];
            double* local = space + factor.first;
            std::fill_n(local, factor.size, 0.0);
            reduce(space + bucket.table, local, program_->loops.data() + item.first_loop,
                   item.n_loops);
            const uint32_t* offsets = program_->offsets.data() + factor.first_offset;
            double* cells = counts + bases[item.factor];
            for (uint32_t e = 0; e < factor.size; ++e) cells[offsets[e]] += weight * local[e];
        }
    return log_sum;
}

// Sums out hole after hole. Leaves in every bucket the product of its items, and in its message the
// sum over its hole. False if the question is impossible.
bool Solver::send_messages(const uint32_t* bases, double& log_sum) {
    double* space = space_.data();
    for (size_t f = 0; f < program_->factors.size(); ++f) {
        const Program::Factor& factor = program_->factors[f];
        const uint32_t* offsets = program_->offsets.data() + factor.first_offset;
        const double* q = q_ + bases[f];
        for (uint32_t e = 0; e < factor.size; ++e) space[factor.first + e] = q[offsets[e]];
    }
    LogSum total;
    for (size_t v = 0; v < program_->buckets.size(); ++v) {
        const Program::Bucket& bucket = program_->buckets[v];
        const size_t card = size_t(program_->cards[v]), n = bucket.message_size;
        double *table = space + bucket.table, *message = space + bucket.message;
        for (uint32_t i = 0; i < bucket.n_items; ++i) {
            const Program::Item& item = program_->items[bucket.first_item + i];
            const Loop* loops = program_->loops.data() + item.first_loop;
            if (i == 0) multiply<true>(table, space + item.source, loops, item.n_loops);
            else multiply<false>(table, space + item.source, loops, item.n_loops);
            if ((i + 1) % SCALED_EVERY == 0 || i + 1 == bucket.n_items) {
                const double largest = largest_of(table, n * card);
                if (largest == 0) return false;
                if (largest < SMALL) {
                    divide(table, n * card, largest);
                    total.add(largest);
                }
            }
        }
        std::copy_n(table, n, message);
        for (size_t s = 1; s < card; ++s)
            for (size_t a = 0; a < n; ++a) message[a] += table[s * n + a];
        if (bucket.parent < 0) total.add(message[0]);
    }
    log_sum = total.value();
    return true;
}

// From the roots back: every bucket's table becomes the probability of its states.
void Solver::receive_beliefs() {
    double* space = space_.data();
    for (size_t v = program_->buckets.size(); v-- > 0;) {
        const Program::Bucket& bucket = program_->buckets[v];
        const size_t card = size_t(program_->cards[v]), n = bucket.message_size;
        double *table = space + bucket.table, *message = space + bucket.message;
        if (bucket.parent < 0) {
            divide(table, card, message[0]);
            continue;
        }
        const Program::Item& item = program_->items[bucket.parent_item];
        scratch_.assign(n, 0.0);
        reduce(space + program_->buckets[bucket.parent].table, scratch_.data(),
               program_->loops.data() + item.first_loop, item.n_loops);
        for (size_t a = 0; a < n; ++a) message[a] = message[a] > 0 ? scratch_[a] / message[a] : 0.0;
        for (size_t s = 0; s < card; ++s)
            for (size_t a = 0; a < n; ++a) table[s * n + a] *= message[a];
    }
}

// ---- Gibbs sampling -----------------------------------------------------------------------------

// Every factor's expected counts are averaged over the conditional probabilities of each of its
// holes given the others, not over the states drawn; `batch_` gathers them.
double Solver::answer_sampled(const uint32_t* bases, double weight, uint64_t seed, double* counts,
                              double* variance) {
    const size_t n_factors = program_->factors.size();
    cell_.assign(bases, bases + n_factors);
    local_.resize(n_factors);
    for (size_t f = 0; f < n_factors; ++f) local_[f] = program_->factors[f].first;
    state_.assign(program_->columns.size(), 0);
    batch_.assign(program_->n_local, 0.0);
    squares_.assign(program_->n_local, 0.0);
    std::fill_n(space_.begin(), program_->n_local, 0.0);
    uint64_t random = seed ^ limits_.seed;
    const int before = std::max(limits_.n_sweeps / 4, 8);
    for (int i = 0; i < before; ++i) sweep(random, 0.0);
    const int length = std::max(limits_.n_sweeps / N_BATCHES, 1);
    is_possible_ = true;
    for (int b = 0; b < N_BATCHES; ++b) {
        for (int i = 0; i < length; ++i) sweep(random, 1.0 / length);
        for (size_t e = 0; e < program_->n_local; ++e) {
            space_[e] += batch_[e] / N_BATCHES;
            squares_[e] += batch_[e] * batch_[e] / N_BATCHES;
            batch_[e] = 0;
        }
    }
    if (!is_possible_) return -std::numeric_limits<double>::infinity();
    if (counts)
        for (size_t f = 0; f < n_factors; ++f) {
            const Program::Factor& factor = program_->factors[f];
            for (uint32_t e = 0; e < factor.size; ++e) {
                const double mean = space_[factor.first + e];
                const double spread =
                    std::max(squares_[factor.first + e] - mean * mean, 0.0) / (N_BATCHES - 1);
                const size_t cell = bases[f] + program_->offsets[factor.first_offset + e];
                counts[cell] += weight * mean;
                if (variance) variance[cell] += weight * weight * spread;
            }
        }
    return std::numeric_limits<double>::quiet_NaN();
}

void Solver::sweep(uint64_t& random, double share) {
    for (size_t h = 0; h < state_.size(); ++h) {
        const size_t card = size_t(program_->cards[h]);
        if (p_.size() < card) p_.resize(card);
        for (const Touch& touch : touches_[h]) {
            cell_[touch.factor] -= uint32_t(state_[h]) * touch.cell_stride;
            local_[touch.factor] -= uint32_t(state_[h]) * touch.local_stride;
        }
        std::fill_n(p_.begin(), card, 1.0);
        double sum = 0;
        int n = 0;
        for (const Touch& touch : touches_[h]) {
            sum = 0;
            for (size_t s = 0; s < card; ++s)
                sum += p_[s] *= q_[cell_[touch.factor] + s * touch.cell_stride];
            if (++n % SCALED_EVERY == 0 && sum > 0 && sum < SMALL) {
                divide(p_.data(), card, sum);
                sum = 1;
            }
        }
        if (!(sum > 0)) {  // no state goes with the others: any may be a way out
            is_possible_ = false;
            std::fill_n(p_.begin(), card, 1.0);
            sum = double(card);
        }
        divide(p_.data(), card, sum);
        if (share > 0)
            for (const Touch& touch : touches_[h]) {
                const double part = share * share_of_factor_[touch.factor];
                for (size_t s = 0; s < card; ++s)
                    batch_[local_[touch.factor] + s * touch.local_stride] += part * p_[s];
            }
        double left = next_uniform(random);
        size_t drawn = 0;
        while (drawn + 1 < card && (left -= p_[drawn]) >= 0) ++drawn;
        while (p_[drawn] == 0 && drawn > 0) --drawn;
        state_[h] = int32_t(drawn);
        for (const Touch& touch : touches_[h]) {
            cell_[touch.factor] += uint32_t(drawn) * touch.cell_stride;
            local_[touch.factor] += uint32_t(drawn) * touch.local_stride;
        }
    }
}

void Solver::marginals(std::vector<double>& out) const {
    out.clear();
    const Program& program = *program_;
    for (size_t h = 0; h < program.columns.size(); ++h) {
        const size_t card = size_t(program.cards[h]), first = out.size();
        out.resize(first + card, 0.0);
        if (program.kind == Kind::alone || program.kind == Kind::joint) {
            size_t inner = 1;
            for (size_t k = h + 1; k < program.columns.size(); ++k) inner *= size_t(program.cards[k]);
            for (size_t j = 0; j < program.joint; ++j) out[first + j / inner % card] += p_[j];
        } else if (program.kind == Kind::tree) {
            const Program::Bucket& bucket = program.buckets[h];
            for (size_t s = 0; s < card; ++s)
                for (size_t a = 0; a < bucket.message_size; ++a)
                    out[first + s] += space_[bucket.table + s * bucket.message_size + a];
        } else {
            const Touch& touch = touches_[h][0];
            const Program::Factor& factor = program.factors[touch.factor];
            for (uint32_t e = 0; e < factor.size; ++e)
                out[first + e / touch.local_stride % card] += space_[factor.first + e];
        }
    }
}

}  // namespace robustbn
