// What rows with holes ask of the tables.
//
// Holes of a row that share a family are connected; a connected set of holes is a component, and
// components of a row are independent given what the row shows. A component's columns are its
// pattern, the families that contain one of them its factors. All that the observed cells say is
// where each factor starts in the tables (its base: the cell with every hole in state 0), so the
// bases of a pattern's factors are a question. Rows that ask the same share it, with the sum of
// their weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace robustbn {

using Ints = std::vector<int32_t>;

struct Family {
    uint32_t first_cell;
    Ints columns, strides;  // of parents and node, as in the layout of cells
};

struct Web {
    Web(Ints cards, const std::vector<Ints>& families);

    Ints cards;
    std::vector<Family> families;
    std::vector<Ints> touched;     // for each column the families that contain it, ascending
    std::vector<Ints> neighbours;  // for each column those that share a family with it, ascending
    Ints rank;                     // for each column its place in the order of elimination
    size_t n_cells = 0;
};

// Greedy order for summing out: fewest new edges first, then the smallest table.
Ints elimination_order(const std::vector<Ints>& neighbours, const Ints& cards);

struct Pattern {
    Ints columns;   // by rank
    Ints families;  // ascending
    uint64_t hash;
};

// Distinct patterns; number i < d is the one hole in column i.
class Patterns {
  public:
    explicit Patterns(const Web& web);
    uint32_t find_or_add(const Ints& columns);
    const Pattern& operator[](size_t i) const { return patterns_[i]; }
    size_t size() const { return patterns_.size(); }
    size_t bytes() const;

  private:
    void grow();

    const Web* web_;
    std::vector<Pattern> patterns_;
    std::vector<uint32_t> slots_;  // open addressing; number + 1
};

// Distinct questions with the weight of the rows that ask them.
class Questions {
  public:
    void add(uint32_t pattern, uint64_t hash, const uint32_t* bases, size_t n_bases, double weight);
    size_t size() const { return weights_.size(); }
    uint32_t pattern(size_t i) const { return patterns_[i]; }
    uint64_t hash(size_t i) const { return hashes_[i]; }
    const uint32_t* bases(size_t i) const { return bases_.data() + starts_[i]; }
    double weight(size_t i) const { return weights_[i]; }
    size_t last() const { return last_; }  // the question that was added to
    size_t bytes() const;

  private:
    void grow();

    std::vector<uint32_t> slots_, patterns_, bases_;
    std::vector<uint64_t> hashes_, starts_;
    std::vector<double> weights_;
    size_t last_ = 0;
};

uint64_t hash_words(uint64_t seed, const uint32_t* words, size_t n);

// Finds the components of one row after another.
class RowReader {
  public:
    RowReader(const Web& web, Patterns& patterns);

    // Call ask(pattern, bases) for every component. Returns the first column whose code is beyond a
    // hole's, or -1.
    template <class Code, class Ask>
    int read(const Code* row, Ask&& ask) {
        const int d = int(web_->cards.size());
        const int32_t* cards = web_->cards.data();
        int n_holes = 0;
        bool is_wrong = false;
        for (int c = 0; c < d; ++c) {
            holes_[n_holes] = c;
            n_holes += row[c] == cards[c];
            is_wrong |= row[c] > cards[c];
        }
        if (is_wrong)
            for (int c = 0; c < d; ++c)
                if (row[c] > cards[c]) return c;
        for (int h = 0; h < n_holes; ++h) {
            const int column = holes_[h];
            if (seen_[column]) continue;
            if (read_alone(row, column)) {
                ask(uint32_t(column), bases_.data());
                continue;
            }
            collect(row, column);
            const uint32_t pattern = patterns_->find_or_add(component_);
            find_bases(row, (*patterns_)[pattern].families);
            ask(pattern, bases_.data());
        }
        for (int h = 0; h < n_holes; ++h) seen_[holes_[h]] = 0;
        return -1;
    }

  private:
    struct Term {
        int32_t column, factor, stride;
    };

    // The bases of a hole all of whose neighbours are observed; false if one is not.
    template <class Code>
    bool read_alone(const Code* row, int column) {
        const Ints& families = web_->touched[column];
        for (size_t f = 0; f < families.size(); ++f)
            bases_[f] = web_->families[families[f]].first_cell;
        for (const Term& term : terms_[column]) {
            const int32_t code = row[term.column];
            if (code == web_->cards[term.column]) return false;
            bases_[term.factor] += uint32_t(term.stride) * uint32_t(code);
        }
        return true;
    }

    template <class Code>
    void collect(const Code* row, int column) {
        component_.assign(1, column);
        seen_[column] = 1;
        for (size_t next = 0; next < component_.size(); ++next)
            for (int32_t c : web_->neighbours[component_[next]])
                if (row[c] == web_->cards[c] && !seen_[c]) {
                    seen_[c] = 1;
                    component_.push_back(c);
                }
        sort_by_rank();
    }

    template <class Code>
    void find_bases(const Code* row, const Ints& families) {
        for (size_t f = 0; f < families.size(); ++f) {
            const Family& family = web_->families[families[f]];
            uint32_t base = family.first_cell;
            for (size_t k = 0; k < family.columns.size(); ++k) {
                const int32_t code = row[family.columns[k]];
                if (code != web_->cards[family.columns[k]])
                    base += uint32_t(family.strides[k]) * uint32_t(code);
            }
            bases_[f] = base;
        }
    }

    void sort_by_rank();

    const Web* web_;
    Patterns* patterns_;
    std::vector<std::vector<Term>> terms_;  // for each column, its observed neighbours' steps
    Ints holes_, component_;
    std::vector<uint8_t> seen_;
    std::vector<uint32_t> bases_;
};

}  // namespace robustbn
