// Which fingerprints occur at least k times, and where.
//
// Most occur once. They are counted by some of their bits, in a table that stays in the cache: what
// shares its entry with fewer than k - 1 others is left out, and the rest counted by other bits while
// that leaves out more. What is left is cut into buckets by its highest bits and sorted there.
// Whatever the fingerprints are, time is O(n log n).
#include "copies.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <vector>

#include "arrays.h"

namespace nb = nanobind;

namespace robustbn {
namespace {

using Prints = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using PrintsOut = nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using NumbersOut = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr int LEAST_BITS = 12, MOST_BITS = 22;  // of the table that counts: 4 KiB to 4 MiB
constexpr int BUCKET_BITS = 12;
constexpr size_t MOST_COUNTED = 255;  // by an entry; it stays there

struct Occurrence {
    uint64_t print;
    int64_t row;
    bool operator<(const Occurrence& other) const {
        return print != other.print ? print < other.print : row < other.row;
    }
};

// How often some bits of fingerprints occur, in a table that suits their number.
class BitCounts {
  public:
    BitCounts(size_t n, size_t least, int shift)
        : shift_(shift), least_(uint8_t(std::min(least, MOST_COUNTED))) {
        int bits = LEAST_BITS;
        while (bits < MOST_BITS && (size_t(1) << bits) < 2 * n) ++bits;
        seen_.assign(size_t(1) << bits, 0);
    }
    void add(uint64_t print) {
        uint8_t& entry = seen_[place_of(print)];
        entry = uint8_t(entry + (entry < MOST_COUNTED));
    }
    bool may_be_enough(uint64_t print) const { return seen_[place_of(print)] >= least_; }

  private:
    size_t place_of(uint64_t print) const { return (print >> shift_) & (seen_.size() - 1); }
    int shift_;
    uint8_t least_;
    std::vector<uint8_t> seen_;
};

// The rows whose fingerprint may occur so often, in order.
std::vector<Occurrence> find_candidates(const uint64_t* prints, size_t n, size_t least) {
    BitCounts counts(n, least, 0);
    for (size_t i = 0; i < n; ++i) counts.add(prints[i]);
    constexpr size_t step = 4096;
    std::vector<Occurrence> found, here(step);
    for (size_t first = 0; first < n; first += step) {
        size_t n_here = 0;
        for (size_t i = first; i < std::min(first + step, n); ++i) {
            here[n_here] = {prints[i], int64_t(i)};  // and over it, unless it may: no branch to guess
            n_here += counts.may_be_enough(prints[i]);
        }
        found.insert(found.end(), here.begin(), here.begin() + ptrdiff_t(n_here));
    }
    return found;
}

// Those whose other bits, too, occur so often.
void leave_out_rare(std::vector<Occurrence>& found, size_t least, int shift) {
    BitCounts counts(found.size(), least, shift);
    for (const Occurrence& o : found) counts.add(o.print);
    size_t n_kept = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        const Occurrence o = found[i];
        found[n_kept] = o;
        n_kept += counts.may_be_enough(o.print);
    }
    found.resize(n_kept);
}

// The same, in the order of their fingerprints and then of their rows.
std::vector<Occurrence> sort_in_buckets(const std::vector<Occurrence>& given) {
    constexpr size_t n_buckets = size_t(1) << BUCKET_BITS;
    const auto bucket_of = [](const Occurrence& o) { return size_t(o.print >> (64 - BUCKET_BITS)); };
    std::vector<size_t> end(n_buckets + 1, 0);
    for (const Occurrence& o : given) ++end[bucket_of(o) + 1];
    for (size_t b = 0; b < n_buckets; ++b) end[b + 1] += end[b];
    std::vector<Occurrence> sorted(given.size());
    std::vector<size_t> next(end.begin(), end.end() - 1);
    for (const Occurrence& o : given) sorted[next[bucket_of(o)]++] = o;
    for (size_t b = 0; b < n_buckets; ++b)
        std::sort(sorted.begin() + ptrdiff_t(end[b]), sorted.begin() + ptrdiff_t(end[b + 1]));
    return sorted;
}

// The rows of every fingerprint that occurs at least `least` times, one fingerprint after the other;
// with how many fingerprints there are and how many rows they have.
class Copies {
  public:
    Copies(Prints prints, int64_t least) {
        require(least >= 1, "at least once");
        require_aligned(prints);
        const uint64_t* data = prints.data();
        const size_t n = prints.shape(0);
        nb::gil_scoped_release release;
        auto found = find_candidates(data, n, size_t(least));
        for (const int shift : {MOST_BITS, 64 - MOST_BITS}) {
            const size_t before = found.size();
            leave_out_rare(found, size_t(least), shift);
            if (4 * found.size() > 3 * before) break;
        }
        const auto sorted = sort_in_buckets(found);
        for (size_t begin = 0; begin < sorted.size();) {
            size_t end = begin + 1;
            while (end < sorted.size() && sorted[end].print == sorted[begin].print) ++end;
            if (end - begin >= size_t(least)) {
                prints_.push_back(sorted[begin].print);
                seen_.push_back(int64_t(end - begin));
                for (size_t i = begin; i < end; ++i) rows_.push_back(sorted[i].row);
            }
            begin = end;
        }
    }

    size_t n_prints() const { return prints_.size(); }
    size_t n_rows() const { return rows_.size(); }

    void write(PrintsOut prints, NumbersOut seen, NumbersOut rows) const {
        require(prints.shape(0) == n_prints() && seen.shape(0) == n_prints() &&
                    rows.shape(0) == n_rows(),
                "shapes differ");
        require_aligned(prints, seen, rows);
        std::copy(prints_.begin(), prints_.end(), prints.data());
        std::copy(seen_.begin(), seen_.end(), seen.data());
        std::copy(rows_.begin(), rows_.end(), rows.data());
    }

  private:
    std::vector<uint64_t> prints_;
    std::vector<int64_t> seen_, rows_;
};

}  // namespace

void bind_copies(nb::module_& m) {
    const auto as_is = nb::arg().noconvert();  // what is written into a copy would be lost
    nb::class_<Copies>(m, "Copies")
        .def(nb::init<Prints, int64_t>(), as_is, nb::arg())
        .def_prop_ro("n_prints", &Copies::n_prints)
        .def_prop_ro("n_rows", &Copies::n_rows)
        .def("write", &Copies::write, as_is, as_is, as_is);
}

}  // namespace robustbn
