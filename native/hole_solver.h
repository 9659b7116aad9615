// Answers to questions: the sum over a component's holes of the product of its factors, and the
// expected counts of each factor's cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hole_questions.h"

namespace robustbn {

struct Limits {
    size_t largest_table;  // entries; a component that needs a larger one is sampled
    int n_sweeps;          // of Gibbs sampling that count; a quarter as many come before
    uint64_t seed;
};

enum class Kind : uint8_t { alone, joint, tree, sampled };

// How a pattern's questions are answered; made once for each pattern. Holes are numbered in the
// order in which they are summed out.
//   alone    one hole: its states are enumerated.
//   joint    few joint states: they are enumerated.
//   tree     holes are summed out one after another, each with a table over itself and the holes
//            it is tied to (its bucket), and then, the other way round, every table becomes the
//            probability of its states.
//   sampled  a table would be larger than the limit: Gibbs sampling.
struct Program {
    Program(const Web& web, const Pattern& pattern, const Limits& limits);

    struct Axis {
        int32_t hole, cell_stride, local_stride;
    };
    struct Factor {
        uint32_t first_axis, n_axes, first, size;  // `first`: of its table in the workspace
        uint32_t first_offset;                     // of its entries' cells, in `offsets`
    };
    // table index -> index of an item that has some of the table's axes; axes that lie together in
    // both are one loop
    struct Loop {
        uint32_t size, table_step, item_step;
    };
    struct Item {
        uint32_t source, first_loop, n_loops;
        int32_t factor;  // -1: the message of an earlier bucket
    };
    struct Bucket {
        uint32_t table, message, message_size, first_item, n_items;
        int32_t parent;        // -1: a root
        uint32_t parent_item;  // this bucket's message among the parent's items
    };

    Kind kind;
    Ints columns, cards;
    std::vector<Axis> axes;
    std::vector<Factor> factors;
    std::vector<uint32_t> offsets;
    std::vector<Loop> loops;
    std::vector<Item> items;
    std::vector<Bucket> buckets;
    size_t n_local = 0;  // entries of all factors' tables
    size_t workspace = 0;
    size_t joint = 0;
    double cost = 0;  // of a question, in multiplications

    size_t bytes() const;

  private:
    struct Shape {
        std::vector<Ints> scopes;
        double largest = 0, total = 0;
    };
    void number_holes(const Web& web, const Pattern& pattern, const Ints& columns_in_order);
    void choose_order(const Web& web, const Pattern& pattern, const Limits& limits);
    Shape shape_of_buckets() const;
    void build_buckets(const Shape& shape);
    void add_item(uint32_t source, const Ints& item_holes, const Ints& table_holes, int32_t factor);
};

// Answers the questions of one pattern after another; one to a thread.
class Solver {
  public:
    Solver(const double* q, const Limits& limits);
    void load(const Program& program);

    // counts[cell] += weight * P(cell | observed) for every cell of every factor, where `counts`
    // is given, and variance[cell] += (weight * standard error)^2 where it was sampled. Returns the
    // logarithm of the sum of products: minus infinity for an impossible question, NaN if sampled.
    double answer(const uint32_t* bases, double weight, uint64_t seed, double* counts,
                  double* variance);

    // After `answer`: the probabilities of each hole's states, by columns[] of the program.
    void marginals(std::vector<double>& out) const;

  private:
    double answer_alone(const uint32_t* bases, double weight, double* counts);
    double answer_joint(const uint32_t* bases, double weight, double* counts);
    double answer_tree(const uint32_t* bases, double weight, double* counts);
    double answer_sampled(const uint32_t* bases, double weight, uint64_t seed, double* counts,
                          double* variance);
    double enumerate_logs(const uint32_t* bases);
    // Make p_ of the products sum to one; returns the log of their sum, minus infinity for none.
    double normalise(const uint32_t* bases);
    bool send_messages(const uint32_t* bases, double& log_sum);
    void receive_beliefs();
    void sweep(uint64_t& state, double share);

    const double* q_;
    const Limits limits_;
    const Program* program_ = nullptr;
    std::vector<double> space_, scratch_, p_;
    std::vector<uint32_t> joint_offsets_;
    // of Gibbs sampling
    struct Touch {
        uint32_t factor, cell_stride, local_stride;
    };
    std::vector<std::vector<Touch>> touches_;
    std::vector<double> share_of_factor_, batch_, squares_;
    std::vector<uint32_t> cell_, local_;
    Ints state_;
    bool is_possible_ = true;
};

}  // namespace robustbn
