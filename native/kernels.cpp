// The CPU kernels, nothing else. Compiled once for each instruction set (ROBUSTBN_ISA).
//
// Notation as in the Python package: a row has one code a group; an expanded table has one line of
// `W` floats for each joint state of each group. All look-ups of a block stay in the first-level
// cache: a tile of TILE groups is walked over all rows of the block before the next tile.
#include "kernels.h"

#include <cstring>

#include "portable.h"
#include "softmax.h"

#define ROBUSTBN_CONCAT_(a, b) a##b
#define ROBUSTBN_CONCAT(a, b) ROBUSTBN_CONCAT_(a, b)
#define ROBUSTBN_STRING_(a) #a
#define ROBUSTBN_STRING(a) ROBUSTBN_STRING_(a)

namespace robustbn {
namespace {

constexpr int TILE = 4;

// ---- transposition: 16 x 16 tiles of bytes ------------------------------------------------------

// out[j * out_stride + r] = in[r * in_stride + j] for r, j < 16. Four rounds of interleaving line i
// with line i + 8 move every byte to its transposed place.
inline void transpose_tile(const uint8_t* in, ptrdiff_t in_stride, uint8_t* out,
                           ptrdiff_t out_stride) {
    Bytes a[16], b[16];
    for (int r = 0; r < 16; ++r) std::memcpy(&a[r], in + r * in_stride, 16);
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 8; ++i) {
            b[2 * i] = interleave_low(a[i], a[i + 8]);
            b[2 * i + 1] = interleave_high(a[i], a[i + 8]);
        }
        for (int i = 0; i < 8; ++i) {
            a[2 * i] = interleave_low(b[i], b[i + 8]);
            a[2 * i + 1] = interleave_high(b[i], b[i + 8]);
        }
    }
    for (int j = 0; j < 16; ++j) std::memcpy(out + j * out_stride, &a[j], 16);
}

// out[j * out_stride + r] = in[r * in_stride + j] for r < n_rows, j < n_columns.
void transpose(const uint8_t* in, ptrdiff_t in_stride, int n_rows, int n_columns, uint8_t* out,
               ptrdiff_t out_stride) {
    int r = 0;
    if (n_columns >= 16) {
        for (; r + 16 <= n_rows; r += 16) {
            for (int j = 0; j < n_columns; j += 16) {
                const int k = j + 16 <= n_columns ? j : n_columns - 16;  // last tile overlaps
                transpose_tile(in + r * in_stride + k, in_stride, out + k * out_stride + r,
                               out_stride);
            }
        }
    }
    for (; r < n_rows; ++r)
        for (int j = 0; j < n_columns; ++j) out[j * out_stride + r] = in[r * in_stride + j];
}

// The same for two bytes, in strips of columns that stay in the first-level cache.
void transpose(const uint16_t* in, ptrdiff_t in_stride, int n_rows, int n_columns, uint16_t* out,
               ptrdiff_t out_stride) {
    constexpr int strip = 16;
    for (int first = 0; first < n_columns; first += strip) {
        const int last = first + strip < n_columns ? first + strip : n_columns;
        for (int r = 0; r < n_rows; ++r)
            for (int j = first; j < last; ++j) out[j * out_stride + r] = in[r * in_stride + j];
    }
}

template <class Column>
void load_columns(const Column* codes, ptrdiff_t row_stride, ptrdiff_t column_stride, int n_rows,
                  int n_columns, Column* columns) {
    if (n_rows < BLOCK) std::memset(columns, 0, size_t(n_columns) * BLOCK * sizeof(Column));
    if (column_stride == 1) {
        transpose(codes, row_stride, n_rows, n_columns, columns, BLOCK);
    } else if (row_stride == 1) {
        for (int j = 0; j < n_columns; ++j)
            std::memcpy(columns + size_t(j) * BLOCK, codes + j * column_stride,
                        size_t(n_rows) * sizeof(Column));
    } else {
        for (int j = 0; j < n_columns; ++j)
            for (int r = 0; r < n_rows; ++r)
                columns[size_t(j) * BLOCK + r] = codes[r * row_stride + j * column_stride];
    }
}

template <class Column>
void store_columns(const Column* columns, int n_rows, int n_columns, Column* codes) {
    transpose(columns, BLOCK, n_columns, n_rows, codes, n_columns);
}

template <class Column>
void column_maxima(const Column* columns, int n_columns, Column* maxima) {
    for (int j = 0; j < n_columns; ++j) {
        const Column* column = columns + size_t(j) * BLOCK;
        Column largest = 0;
        for (int r = 0; r < BLOCK; ++r) largest = column[r] > largest ? column[r] : largest;
        maxima[j] = largest;
    }
}

// ---- fusing columns into group codes ------------------------------------------------------------

// code = code * card + column, by Horner's rule; small cards without a multiplication.
template <class Code, class Column>
inline void append_column(Code* code, const Column* column, int card) {
    switch (card) {
        case 2:
            for (int r = 0; r < BLOCK; ++r) code[r] = Code(code[r] + code[r] + column[r]);
            return;
        case 3:
            for (int r = 0; r < BLOCK; ++r) code[r] = Code(code[r] + code[r] + code[r] + column[r]);
            return;
        case 4:
            for (int r = 0; r < BLOCK; ++r) {
                const Code twice = Code(code[r] + code[r]);
                code[r] = Code(twice + twice + column[r]);
            }
            return;
        default:
            for (int r = 0; r < BLOCK; ++r) code[r] = Code(code[r] * card + column[r]);
    }
}

template <class Code, class Column>
inline void fuse_columns(const Column* columns, const Group& group, Code* code) {
    const Column* first = columns + size_t(group.columns[0]) * BLOCK;
    for (int r = 0; r < BLOCK; ++r) code[r] = Code(first[r]);
    for (int k = 1; k < group.n_columns; ++k)
        append_column(code, columns + size_t(group.columns[k]) * BLOCK, group.cards[k]);
}

template <class Code, class Column>
void blank_holes(const Column* columns, const Group& group, Code* code) {
    const Code blank = Code(group.n_entries - 1);
    for (int k = 0; k < group.n_columns; ++k) {
        const Column* column = columns + size_t(group.columns[k]) * BLOCK;
        const Column last = Column(group.cards[k] - 1);
        for (int r = 0; r < BLOCK; ++r) code[r] = column[r] > last ? blank : code[r];
    }
}

template <class Code, class Column>
void fold_columns(const Column* columns, const Group& group, Code* code) {
    alignas(64) uint16_t joint[BLOCK];
    fuse_columns(columns, group, joint);
    for (int r = 0; r < BLOCK; ++r) code[r] = Code(group.fold[joint[r]]);
}

template <class Code, class Column>
void pack_group(const Column* columns, const Group& group, uint8_t* out) {
    alignas(64) Code code[BLOCK];
    if (group.fold) fold_columns(columns, group, code);
    else fuse_columns(columns, group, code);
    if (group.is_blanked) blank_holes(columns, group, code);
    std::memcpy(out, code, sizeof code);
}

template <class Column>
void pack_block(const Column* columns, const Groups& groups, uint8_t* block) {
    for (int g = 0; g < groups.n_packed; ++g) {
        const Group& group = groups.group[g];
        uint8_t* out = block + group.offset;
        if (group.width == 1) pack_group<uint8_t>(columns, group, out);
        else if (group.width == 2) pack_group<uint16_t>(columns, group, out);
        else pack_group<uint32_t>(columns, group, out);
    }
}

// ---- walking the groups in tiles ----------------------------------------------------------------

// Calls visit<Code, K>(g) for tiles of K groups g .. g + K - 1 whose codes have one width, so that
// those of one follow those of the other in a block: TILE of them, and then what is left over.
template <class Code, class Visitor>
inline void visit_tile(int n_groups, int g, Visitor& visitor) {
    static_assert(TILE == 4, "one case a size");
    switch (n_groups) {
        case 4: visitor.template visit<Code, 4>(g); return;
        case 3: visitor.template visit<Code, 3>(g); return;
        case 2: visitor.template visit<Code, 2>(g); return;
        default: visitor.template visit<Code, 1>(g);
    }
}

template <class Visitor>
inline void visit_tiles(const Groups& groups, Visitor& visitor) {
    for (int g = 0; g < groups.n;) {
        const int width = groups.group[g].width, most = width == 4 ? 1 : TILE;
        int same = 1;
        while (same < most && g + same < groups.n && groups.group[g + same].width == width) ++same;
        if (width == 1) visit_tile<uint8_t>(same, g, visitor);
        else if (width == 2) visit_tile<uint16_t>(same, g, visitor);
        else visitor.template visit<uint32_t, 1>(g);
        g += same;
    }
}

template <int W>
struct Projector {
    using V = typename Wide<W>::type;
    const uint8_t* block;
    const Groups& groups;
    const float* table;
    int n_rows;
    float* y;

    template <class Code, int K>
    void visit(int g) {
        const Code* codes = reinterpret_cast<const Code*>(block + groups.group[g].offset);
        const V* lines[K];
        for (int k = 0; k < K; ++k)
            lines[k] = reinterpret_cast<const V*>(table + groups.group[g + k].first_entry * W);
        V* out = reinterpret_cast<V*>(y);
        if (K < TILE) {  // those left over are added one by one
            for (int r = 0; r < n_rows; ++r) {
                V sum = out[r];
                for (int k = 0; k < K; ++k) sum += lines[k][codes[k * BLOCK + r]];
                out[r] = sum;
            }
            return;
        }
        for (int r = 0; r < n_rows; ++r) {
            V sum = lines[0][codes[r]];
            for (int k = 1; k < K; ++k) sum += lines[k][codes[k * BLOCK + r]];
            out[r] += sum;
        }
    }
};

template <int W>
struct Scatterer {
    using V = typename Wide<W>::type;
    const uint8_t* block;
    const Groups& groups;
    const float* y;
    int n_rows;
    float* total;

    template <class Code, int K>
    void visit(int g) {
        const Code* codes = reinterpret_cast<const Code*>(block + groups.group[g].offset);
        V* lines[K];
        for (int k = 0; k < K; ++k)
            lines[k] = reinterpret_cast<V*>(total + groups.group[g + k].first_entry * W);
        const V* in = reinterpret_cast<const V*>(y);
        for (int r = 0; r < n_rows; ++r) {
            const V value = in[r];
            for (int k = 0; k < K; ++k) lines[k][codes[k * BLOCK + r]] += value;
        }
    }
};

template <int W>
void project_rows(const uint8_t* block, const Groups& groups, const float* table,
                  const float* offset, int n_rows, float* y) {
    for (int r = 0; r < n_rows; ++r)
        for (int c = 0; c < W; ++c) y[r * W + c] = -offset[c];
    Projector<W> projector{block, groups, table, n_rows, y};
    visit_tiles(groups, projector);
}

void project_block(int width, const uint8_t* block, const Groups& groups, const float* table,
                   const float* offset, int n_rows, float* y) {
    if (width == 4) project_rows<4>(block, groups, table, offset, n_rows, y);
    else if (width == 8) project_rows<8>(block, groups, table, offset, n_rows, y);
    else project_rows<16>(block, groups, table, offset, n_rows, y);
}

template <int W>
void scatter_rows(const uint8_t* block, const Groups& groups, const float* y, int n_rows,
                  float* total) {
    Scatterer<W> scatterer{block, groups, y, n_rows, total};
    visit_tiles(groups, scatterer);
}

void scatter_block(int width, const uint8_t* block, const Groups& groups, const float* y,
                   int n_rows, float* total) {
    if (width == 4) scatter_rows<4>(block, groups, y, n_rows, total);
    else if (width == 8) scatter_rows<8>(block, groups, y, n_rows, total);
    else scatter_rows<16>(block, groups, y, n_rows, total);
}

// The sum runs by halves (8 + 8, 4 + 4, ...), the same way for every instruction set.
template <int W>
void square_norms_of(const float* y, int n_rows, float* norms) {
    for (int r = 0; r < n_rows; ++r) {
        float square[W];
        for (int c = 0; c < W; ++c) square[c] = y[r * W + c] * y[r * W + c];
        for (int half = W / 2; half > 0; half /= 2)
            for (int c = 0; c < half; ++c) square[c] += square[c + half];
        norms[r] = square[0];
    }
}

void square_norms(int width, const float* y, int n_rows, float* norms) {
    if (width == 4) square_norms_of<4>(y, n_rows, norms);
    else if (width == 8) square_norms_of<8>(y, n_rows, norms);
    else square_norms_of<16>(y, n_rows, norms);
}

template <class Weight>
void scale_rows_by(int width, const Weight* weights, int n_rows, float* y) {
    for (int r = 0; r < n_rows; ++r) {
        const float weight = float(weights[r]);
        for (int c = 0; c < width; ++c) y[r * width + c] *= weight;
    }
}

void scale_rows(int width, const double* weights, int n_rows, float* y) {
    scale_rows_by(width, weights, n_rows, y);
}

void scale_rows_float(int width, const float* weights, int n_rows, float* y) {
    scale_rows_by(width, weights, n_rows, y);
}

void flush(float* part, double* total, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        total[i] += double(part[i]);
        part[i] = 0;
    }
}

// ---- counting -----------------------------------------------------------------------------------

template <class Code, class Total, class Weight>
void count_group(const uint8_t* blocks, const Groups& groups, const Group& group, size_t n_rows,
                 const Weight* weights, Total* histogram) {
    constexpr int ways = sizeof(Code) == 1 ? WAYS : 1;
    Total* total = histogram + group.first_entry * WAYS;
    for (size_t first = 0; first < n_rows; first += BLOCK) {
        const uint8_t* block = blocks + first / BLOCK * groups.block_bytes;
        const Code* codes = reinterpret_cast<const Code*>(block + group.offset);
        const int n = n_rows - first < BLOCK ? int(n_rows - first) : BLOCK;
        int r = 0;
        for (; r + ways <= n; r += ways)
            for (int k = 0; k < ways; ++k)
                total[size_t(codes[r + k]) * WAYS + k] +=
                    weights ? Total(weights[first + r + k]) : Total(1);
        for (; r < n; ++r)
            total[size_t(codes[r]) * WAYS] += weights ? Total(weights[first + r]) : Total(1);
    }
}

template <class Total, class Weight>
void count_all(const uint8_t* blocks, const Groups& groups, size_t n_rows, const Weight* weights,
               Total* histogram) {
    for (int g = 0; g < groups.n; ++g) {
        const Group& group = groups.group[g];
        if (group.width == 1)
            count_group<uint8_t>(blocks, groups, group, n_rows, weights, histogram);
        else if (group.width == 2)
            count_group<uint16_t>(blocks, groups, group, n_rows, weights, histogram);
        else
            count_group<uint32_t>(blocks, groups, group, n_rows, weights, histogram);
    }
}

void count_blocks(const uint8_t* blocks, const Groups& groups, size_t n_rows,
                  uint32_t* histogram) {
    count_all(blocks, groups, n_rows, static_cast<const float*>(nullptr), histogram);
}

void count_blocks_weighted(const uint8_t* blocks, const Groups& groups, size_t n_rows,
                           const double* weights, double* histogram) {
    count_all(blocks, groups, n_rows, weights, histogram);
}

void count_blocks_weighted_float(const uint8_t* blocks, const Groups& groups, size_t n_rows,
                                 const float* weights, double* histogram) {
    count_all(blocks, groups, n_rows, weights, histogram);
}

// ---- telling rows apart -------------------------------------------------------------------------

template <class Code>
void hash_group(const uint8_t* codes, const uint64_t* table, uint64_t* hashes) {
    const Code* code = reinterpret_cast<const Code*>(codes);
    for (int r = 0; r < BLOCK; ++r) hashes[r] += table[code[r]];
}

void hash_block(const uint8_t* block, const Groups& groups, const uint64_t* const* tables,
                uint64_t* hashes) {
    for (int r = 0; r < BLOCK; ++r) hashes[r] = 0;
    for (int g = 0; g < groups.n_packed; ++g) {
        const Group& group = groups.group[g];
        if (!tables[g]) continue;
        if (group.width == 1) hash_group<uint8_t>(block + group.offset, tables[g], hashes);
        else if (group.width == 2) hash_group<uint16_t>(block + group.offset, tables[g], hashes);
        else hash_group<uint32_t>(block + group.offset, tables[g], hashes);
    }
}

// ---- checking -----------------------------------------------------------------------------------

template <class Code>
bool is_below(const uint8_t* codes, size_t n_entries) {
    const Code* code = reinterpret_cast<const Code*>(codes);
    Code largest = 0;
    for (int r = 0; r < BLOCK; ++r) largest = code[r] > largest ? code[r] : largest;
    return largest < n_entries;
}

bool has_codes(const uint8_t* block, const Groups& groups, int n_groups) {
    for (int g = 0; g < n_groups; ++g) {
        const Group& group = groups.group[g];
        const uint8_t* codes = block + group.offset;
        if (!(group.width == 1   ? is_below<uint8_t>(codes, group.n_entries)
              : group.width == 2 ? is_below<uint16_t>(codes, group.n_entries)
                                 : is_below<uint32_t>(codes, group.n_entries)))
            return false;
    }
    return true;
}

// ---- drawing rows -------------------------------------------------------------------------------

// A number for each (row, node) by `mix`: no state, so any block of rows can be drawn by any thread,
// and NumPy can draw the same ones.
template <class Column>
void sample_block(const SampledNode* nodes, int n_nodes, uint64_t key, uint64_t first_row,
                  Column* columns) {
    constexpr int half = BLOCK / 2;
    alignas(64) uint64_t even[half], odd[half], pairs[half];
    alignas(64) int32_t configuration[BLOCK], state[BLOCK], u[BLOCK];
    alignas(64) Column parent[BLOCK];  // a copy: whatever is written to is not read here
    const uint64_t step = n_nodes * GOLDEN;
    for (int k = 0; k < half; ++k) {
        even[k] = uint64_t(2 * k) * step;
        odd[k] = even[k] + step;
    }
    for (int i = 0; i < n_nodes; ++i) {
        const SampledNode& node = nodes[i];
        const uint64_t start = key + (first_row * n_nodes + node.column + 1) * GOLDEN;
        // two rows a word, the even one low: nothing has to be narrowed
        for (int k = 0; k < half; ++k)
            pairs[k] = mix_high(start + even[k]) | (mix_high(start + odd[k]) << 32);
        std::memcpy(u, pairs, sizeof u);
        for (int r = 0; r < BLOCK; ++r) configuration[r] = 0;
        for (int k = 0; k < node.n_parents; ++k) {
            std::memcpy(parent, columns + size_t(node.parents[k]) * BLOCK, sizeof parent);
            const int32_t card = node.parent_cards[k];
            for (int r = 0; r < BLOCK; ++r) configuration[r] = configuration[r] * card + parent[r];
        }
        Column* out = columns + size_t(node.column) * BLOCK;
        const int32_t n = node.card - 1, *thresholds = node.thresholds;
        if (n == 1) {
            for (int r = 0; r < BLOCK; ++r) state[r] = u[r] >= thresholds[configuration[r]];
            for (int r = 0; r < BLOCK; ++r) out[r] = Column(state[r]);
        } else if (n <= 8) {
            for (int r = 0; r < BLOCK; ++r) state[r] = 0;
            for (int v = 0; v < n; ++v)
                for (int r = 0; r < BLOCK; ++r) state[r] += u[r] >= thresholds[configuration[r] * n + v];
            for (int r = 0; r < BLOCK; ++r) out[r] = Column(state[r]);
        } else {
            for (int r = 0; r < BLOCK; ++r) {
                const int32_t* threshold = thresholds + size_t(configuration[r]) * size_t(n);
                int low = 0, high = n;  // the state is the number of thresholds <= u
                while (low < high) {
                    const int middle = (low + high) / 2;
                    if (u[r] >= threshold[middle]) low = middle + 1;
                    else high = middle;
                }
                out[r] = Column(low);
            }
        }
    }
}

template <class Column>
constexpr ColumnKernels<Column> COLUMN_KERNELS = {
    load_columns<Column>, column_maxima<Column>, pack_block<Column>,
    sample_block<Column>, store_columns<Column>,
};

}  // namespace

extern const Kernels ROBUSTBN_CONCAT(kernels_, ROBUSTBN_ISA);
const Kernels ROBUSTBN_CONCAT(kernels_, ROBUSTBN_ISA) = {
    ROBUSTBN_STRING(ROBUSTBN_ISA),
    COLUMN_KERNELS<uint8_t>,
    COLUMN_KERNELS<uint16_t>,
    project_block,
    scatter_block,
    square_norms,
    scale_rows,
    scale_rows_float,
    divide_rows,
    divide_rows_apart,
    divide_rows_in_two,
    flush,
    count_blocks,
    count_blocks_weighted,
    count_blocks_weighted_float,
    hash_block,
    has_codes,
};

}  // namespace robustbn
