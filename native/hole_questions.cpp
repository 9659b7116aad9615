#include "hole_questions.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace robustbn {

namespace {

uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

int count_bits(uint64_t word) {
    int n = 0;
    for (; word; word &= word - 1) ++n;
    return n;
}

// A graph on few nodes as rows of bits, from which nodes are eliminated.
class Elimination {
  public:
    Elimination(const std::vector<Ints>& neighbours, const Ints& cards)
        : cards_(cards), n_(neighbours.size()), words_((n_ + 63) / 64), bits_(n_ * words_),
          fill_(n_), table_(n_) {
        for (size_t i = 0; i < n_; ++i)
            for (int32_t j : neighbours[i]) set(i, size_t(j));
    }

    Ints order() {
        Ints order;
        std::vector<uint8_t> is_left(n_, 1);
        for (size_t i = 0; i < n_; ++i) judge(i);
        for (size_t step = 0; step < n_; ++step) {
            size_t best = n_;
            for (size_t i = 0; i < n_; ++i)
                if (is_left[i] && (best == n_ || fill_[i] < fill_[best] ||
                                   (fill_[i] == fill_[best] && table_[i] < table_[best])))
                    best = i;
            order.push_back(int32_t(best));
            is_left[best] = 0;
            eliminate(best);
        }
        return order;
    }

  private:
    uint64_t* row(size_t i) { return bits_.data() + i * words_; }
    void set(size_t i, size_t j) { row(i)[j / 64] |= uint64_t(1) << (j % 64); }

    void list(size_t i, Ints& out) {
        out.clear();
        for (size_t w = 0; w < words_; ++w)
            for (uint64_t word = row(i)[w]; word; word &= word - 1) {
                const uint64_t low = word & (~word + 1);
                out.push_back(int32_t(w * 64 + size_t(count_bits(low - 1))));
            }
    }

    void judge(size_t i) {
        list(i, around_);
        double table = cards_[i];
        int64_t missing = 0;
        for (int32_t j : around_) {
            table *= cards_[j];
            for (size_t w = 0; w < words_; ++w) missing += count_bits(row(i)[w] & ~row(size_t(j))[w]);
            missing -= 1;  // j itself is no neighbour of j
        }
        fill_[i] = missing;
        table_[i] = table;
    }

    void eliminate(size_t v) {
        Ints clique, further;
        list(v, clique);
        const bool is_full = fill_[v] == 0;
        for (int32_t j : clique) {
            for (size_t w = 0; w < words_; ++w) row(size_t(j))[w] |= row(v)[w];
            row(size_t(j))[size_t(j) / 64] &= ~(uint64_t(1) << (size_t(j) % 64));
            row(size_t(j))[v / 64] &= ~(uint64_t(1) << (v % 64));
        }
        std::vector<uint8_t> is_stale(n_, 0);
        for (int32_t j : clique) {
            is_stale[j] = 1;
            if (is_full) continue;
            list(size_t(j), further);
            for (int32_t k : further) is_stale[k] = 1;
        }
        for (size_t i = 0; i < n_; ++i)
            if (is_stale[i]) judge(i);
    }

    const Ints& cards_;
    size_t n_, words_;
    std::vector<uint64_t> bits_;
    std::vector<int64_t> fill_;
    std::vector<double> table_;
    Ints around_;
};

}  // namespace

uint64_t hash_words(uint64_t seed, const uint32_t* words, size_t n) {
    uint64_t hash = seed;
    for (size_t i = 0; i < n; ++i) hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u + (hash >> 29);
    return mix(hash);
}

Ints elimination_order(const std::vector<Ints>& neighbours, const Ints& cards) {
    return Elimination(neighbours, cards).order();
}

Web::Web(Ints cards_, const std::vector<Ints>& members) : cards(std::move(cards_)) {
    const size_t d = cards.size();
    if (members.size() != d) throw std::invalid_argument("one family a node");
    for (int32_t card : cards)
        if (card < 1 || card > 65536) throw std::invalid_argument("a node has 1 to 65536 states");
    touched.resize(d);
    neighbours.resize(d);
    std::vector<uint8_t> is_member(d);
    for (size_t i = 0; i < d; ++i) {
        std::fill(is_member.begin(), is_member.end(), 0);
        Family family{uint32_t(n_cells), members[i], Ints(members[i].size())};
        size_t size = 1;
        for (size_t k = members[i].size(); k-- > 0;) {
            const int32_t c = members[i][k];
            if (c < 0 || size_t(c) >= d || is_member[c]) throw std::invalid_argument("no such column");
            is_member[c] = 1;
            family.strides[k] = int32_t(size);
            size *= size_t(cards[c]);
            if (size > size_t(std::numeric_limits<int32_t>::max()))
                throw std::invalid_argument("a table is too large to address");
            touched[c].push_back(int32_t(i));
            for (int32_t other : members[i])
                if (other != c) neighbours[c].push_back(other);
        }
        if (!is_member[i]) throw std::invalid_argument("a node is of its own family");
        n_cells += size;
        families.push_back(std::move(family));
    }
    if (n_cells > size_t(std::numeric_limits<int32_t>::max()))
        throw std::invalid_argument("the tables are too large to address");
    for (Ints& columns : neighbours) {
        std::sort(columns.begin(), columns.end());
        columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    }
    const Ints order = elimination_order(neighbours, cards);
    rank.resize(d);
    for (size_t i = 0; i < d; ++i) rank[order[i]] = int32_t(i);
}

// ---- patterns -----------------------------------------------------------------------------------

Patterns::Patterns(const Web& web) : web_(&web) {
    for (size_t i = 0; i < web.cards.size(); ++i) find_or_add({int32_t(i)});
}

uint32_t Patterns::find_or_add(const Ints& columns) {
    if (2 * (patterns_.size() + 1) > slots_.size()) grow();
    const uint64_t hash =
        hash_words(columns.size(), reinterpret_cast<const uint32_t*>(columns.data()), columns.size());
    const size_t mask = slots_.size() - 1;
    size_t slot = hash & mask;
    for (; slots_[slot]; slot = (slot + 1) & mask) {
        const Pattern& pattern = patterns_[slots_[slot] - 1];
        if (pattern.hash == hash && pattern.columns == columns) return slots_[slot] - 1;
    }
    Pattern pattern{columns, {}, hash};
    for (int32_t c : columns)
        pattern.families.insert(pattern.families.end(), web_->touched[c].begin(),
                                web_->touched[c].end());
    std::sort(pattern.families.begin(), pattern.families.end());
    pattern.families.erase(std::unique(pattern.families.begin(), pattern.families.end()),
                           pattern.families.end());
    pattern.families.shrink_to_fit();
    patterns_.push_back(std::move(pattern));
    slots_[slot] = uint32_t(patterns_.size());
    return uint32_t(patterns_.size() - 1);
}

void Patterns::grow() {
    std::vector<uint32_t> slots(std::max(size_t(64), slots_.size() * 2), 0);
    const size_t mask = slots.size() - 1;
    for (size_t i = 0; i < patterns_.size(); ++i) {
        size_t slot = patterns_[i].hash & mask;
        while (slots[slot]) slot = (slot + 1) & mask;
        slots[slot] = uint32_t(i + 1);
    }
    slots_ = std::move(slots);
}

size_t Patterns::bytes() const {
    size_t total = slots_.capacity() * 4 + patterns_.capacity() * sizeof(Pattern);
    for (const Pattern& p : patterns_) total += 4 * (p.columns.capacity() + p.families.capacity());
    return total;
}

// ---- questions ----------------------------------------------------------------------------------

void Questions::add(uint32_t pattern, uint64_t hash, const uint32_t* bases, size_t n_bases,
                    double weight) {
    if (2 * (size() + 1) > slots_.size()) grow();
    const size_t mask = slots_.size() - 1;
    // the lowest bits have chosen the shard
    size_t slot = (hash >> 8) & mask;
    for (; slots_[slot]; slot = (slot + 1) & mask) {
        const size_t i = slots_[slot] - 1;
        if (hashes_[i] == hash && patterns_[i] == pattern &&
            std::memcmp(bases_.data() + starts_[i], bases, n_bases * sizeof(uint32_t)) == 0) {
            weights_[i] += weight;
            last_ = i;
            return;
        }
    }
    if (size() == std::numeric_limits<uint32_t>::max() - 1) throw std::bad_alloc();
    starts_.push_back(bases_.size());
    bases_.insert(bases_.end(), bases, bases + n_bases);
    patterns_.push_back(pattern);
    hashes_.push_back(hash);
    weights_.push_back(weight);
    slots_[slot] = uint32_t(size());
    last_ = size() - 1;
}

void Questions::grow() {
    std::vector<uint32_t> slots(std::max(size_t(64), slots_.size() * 2), 0);
    const size_t mask = slots.size() - 1;
    for (size_t i = 0; i < size(); ++i) {
        size_t slot = (hashes_[i] >> 8) & mask;
        while (slots[slot]) slot = (slot + 1) & mask;
        slots[slot] = uint32_t(i + 1);
    }
    slots_ = std::move(slots);
}

size_t Questions::bytes() const {
    return 4 * (slots_.capacity() + patterns_.capacity() + bases_.capacity()) +
           8 * (hashes_.capacity() + starts_.capacity() + weights_.capacity());
}

// ---- rows ---------------------------------------------------------------------------------------

RowReader::RowReader(const Web& web, Patterns& patterns)
    : web_(&web), patterns_(&patterns), terms_(web.cards.size()), holes_(web.cards.size() + 1),
      seen_(web.cards.size()), bases_(web.cards.size()) {
    for (size_t c = 0; c < web.cards.size(); ++c)
        for (size_t f = 0; f < web.touched[c].size(); ++f) {
            const Family& family = web.families[web.touched[c][f]];
            for (size_t k = 0; k < family.columns.size(); ++k)
                if (family.columns[k] != int32_t(c))
                    terms_[c].push_back({family.columns[k], int32_t(f), family.strides[k]});
        }
}

void RowReader::sort_by_rank() {
    std::sort(component_.begin(), component_.end(),
              [&](int32_t a, int32_t b) { return web_->rank[a] < web_->rank[b]; });
}

}  // namespace robustbn
