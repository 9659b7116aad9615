// Every kernel on threads, over buffers that are exactly as large as they must be: compiled with
// sanitizers and run by tests/world/test_sanitize.py; by several compilers, with and without vectors, by
// tests/world/test_portable.py. Ends with 1 if a sum is wrong; prints a hash of all sums.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "kernels.h"
#include "parallel.h"

namespace robustbn {
extern const Kernels kernels_portable;
}

using namespace robustbn;

namespace {

constexpr int N_COLUMNS = 19, N_BLOCKS = 5;
constexpr size_t LAST_ROWS = 77;  // of the last block
constexpr size_t N_ROWS = size_t(N_BLOCKS - 1) * BLOCK + LAST_ROWS;

// Groups of codes of 1, 2 and 4 bytes; one folded, one blanked, one that touches no cell.
struct Plan {
    std::vector<int32_t> cards;
    std::vector<std::vector<int32_t>> columns, group_cards;
    std::vector<uint16_t> fold;
    std::vector<Group> groups;
    Groups view{};

    Plan() : cards(N_COLUMNS, 2), columns{{0, 1, 2}, {3, 4}, {5, 6, 7}, {8}, {9, 10}, {11}} {
        cards[3] = 100, cards[4] = 101, cards[5] = 41, cards[6] = 41, cards[7] = 42, cards[8] = 7;
        const int widths[] = {1, 2, 4, 1, 1, 1};
        size_t offset = 0, first = 0;
        for (size_t g = 0; g < columns.size(); ++g) {
            size_t n = 1;
            group_cards.emplace_back();
            for (int32_t c : columns[g]) {
                group_cards[g].push_back(cards[c] - (g == 3));
                n *= size_t(group_cards[g].back());
            }
            if (g == 4) {
                fold.assign(n, 0);
                fold[n - 1] = 1;
                n = 2;
            }
            n += g == 3;
            groups.push_back({widths[g], int(columns[g].size()), columns[g].data(), nullptr, offset,
                              first, n, g == 4 ? fold.data() : nullptr, g == 3});
            offset += size_t(BLOCK) * widths[g];
            if (g + 1 < columns.size()) first += n;
        }
        for (size_t g = 0; g < groups.size(); ++g) groups[g].cards = group_cards[g].data();
        view = {groups.data(), int(groups.size()) - 1, int(groups.size()), offset, first};
    }
};

template <class Code>
std::vector<uint8_t> pack(const Kernels& k, const ColumnKernels<Code>& columns_of, const Plan& plan) {
    std::mt19937 random(1);
    std::vector<Code> codes(N_ROWS * N_COLUMNS);
    for (size_t r = 0; r < N_ROWS; ++r)
        for (int c = 0; c < N_COLUMNS; ++c) codes[r * N_COLUMNS + c] = Code(random() % plan.cards[c]);
    std::vector<uint8_t> packed(N_BLOCKS * plan.view.block_bytes);
    run_parallel(N_BLOCKS, 4, [&](size_t b) {
        std::vector<Code> columns(size_t(N_COLUMNS) * BLOCK), maxima(N_COLUMNS), back;
        const int n = b + 1 < N_BLOCKS ? BLOCK : int(LAST_ROWS);
        const Code* first = codes.data() + b * BLOCK * N_COLUMNS;
        columns_of.load_columns(first, N_COLUMNS, 1, n, N_COLUMNS, columns.data());
        columns_of.column_maxima(columns.data(), N_COLUMNS, maxima.data());
        columns_of.pack_block(columns.data(), plan.view, packed.data() + b * plan.view.block_bytes);
        back.resize(size_t(n) * N_COLUMNS);
        columns_of.store_columns(columns.data(), n, N_COLUMNS, back.data());
        if (!std::equal(back.begin(), back.end(), first) ||
            !k.has_codes(packed.data() + b * plan.view.block_bytes, plan.view, plan.view.n_packed))
            throw std::runtime_error("rows came back as others");
    });
    return packed;
}

void pass(const Kernels& k, const Plan& plan, const std::vector<uint8_t>& packed) {
    const size_t n = plan.view.n_entries;
    std::vector<std::vector<uint64_t>> hash_tables;
    std::vector<const uint64_t*> hash_of;
    for (const Group& group : plan.groups) hash_tables.emplace_back(group.n_entries, 3);
    for (const auto& table : hash_tables) hash_of.push_back(table.data());
    std::vector<double> lanes(N_BLOCKS);
    for (int width : {4, 8, 16})
        run_parallel(N_BLOCKS, 4, [&](size_t b) {
            const uint8_t* block = packed.data() + b * plan.view.block_bytes;
            const int rows = b + 1 < N_BLOCKS ? BLOCK : int(LAST_ROWS);
            std::vector<float> table(n * width, 1.0f), offset(width, 0.0f), y(size_t(BLOCK) * width);
            std::vector<float> part(n * width), norms(BLOCK), single(BLOCK, 1.0f);
            std::vector<double> total(n * width), full(BLOCK, 1.0), weighed(n * WAYS);
            std::vector<uint32_t> counts(n * WAYS);
            std::vector<uint64_t> hashes(BLOCK);
            k.project_block(width, block, plan.view, table.data(), offset.data(), rows, y.data());
            k.square_norms(width, y.data(), rows, norms.data());
            k.scale_rows(width, full.data(), rows, y.data());
            k.scale_rows_float(width, single.data(), rows, y.data());
            k.scatter_block(width, block, plan.view, y.data(), rows, part.data());
            k.flush(part.data(), total.data(), total.size());
            k.count_blocks(block, plan.view, size_t(rows), counts.data());
            k.count_blocks_weighted(block, plan.view, size_t(rows), full.data(), weighed.data());
            k.count_blocks_weighted_float(block, plan.view, size_t(rows), single.data(), weighed.data());
            k.hash_block(block, plan.view, hash_of.data(), hashes.data());
            lanes[b] = 0;
            for (uint32_t count : counts) lanes[b] += count;
            for (double count : weighed) lanes[b] += count;
            for (int r = 0; r < rows; ++r) lanes[b] += norms[r] == float(width * plan.view.n * plan.view.n);
            for (int r = 0; r < rows; ++r) lanes[b] += hashes[r] == 3 * plan.groups.size();
        });
    double sum = 0;
    for (double lane : lanes) sum += lane;
    if (sum != double(N_ROWS) * (3 * plan.view.n + 2)) throw std::runtime_error("a sum is wrong");
}

template <class Code>
void draw(const ColumnKernels<Code>& columns_of) {
    const std::vector<int32_t> parent{0}, parent_cards{3}, few{1 << 28, 1 << 29}, many(3 * 19, 1 << 29);
    const SampledNode nodes[] = {{0, 3, 0, nullptr, nullptr, few.data()},
                                 {1, 20, 1, parent.data(), parent_cards.data(), many.data()}};
    run_parallel(8, 4, [&](size_t b) {
        std::vector<Code> columns(2 * BLOCK);
        columns_of.sample_block(nodes, 2, 7, b * BLOCK, columns.data());
        for (int r = 0; r < BLOCK; ++r)
            if (columns[r] > 2 || columns[BLOCK + r] > 19) throw std::runtime_error("no such state");
    });
}

// A hash of every bit of what the passes give for tables of uneven numbers, and of the packed rows.
uint64_t fingerprint(const Kernels& k, const Plan& plan, const std::vector<uint8_t>& packed) {
    uint64_t hash = 0;
    const auto take = [&](const std::vector<float>& values) {
        for (float value : values) {
            uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            hash = mix(hash + bits);
        }
    };
    for (uint8_t byte : packed) hash = mix(hash + byte);
    std::mt19937 random(2);
    for (int width : {4, 8, 16}) {
        std::vector<float> table(plan.view.n_entries * width), part(table.size()), offset(width);
        std::vector<float> y(size_t(BLOCK) * width), norms(BLOCK);
        for (float& value : table) value = float(random()) / 3e9f - 0.7f;
        for (float& value : offset) value = float(random()) / 7e9f;
        for (int b = 0; b < N_BLOCKS; ++b) {
            const uint8_t* block = packed.data() + b * plan.view.block_bytes;
            k.project_block(width, block, plan.view, table.data(), offset.data(), BLOCK, y.data());
            k.square_norms(width, y.data(), BLOCK, norms.data());
            k.scatter_block(width, block, plan.view, y.data(), BLOCK, part.data());
            take(y), take(norms);
        }
        take(part);
    }
    return hash;
}

}  // namespace

int main() {
    try {
        const Plan plan;
        const Kernels& k = kernels_portable;
        const std::vector<uint8_t> packed = pack(k, k.bytes, plan);
        pass(k, plan, packed);
        pass(k, plan, pack(k, k.words, plan));
        draw(k.bytes);
        draw(k.words);
        std::printf("%016" PRIx64 "\n", fingerprint(k, plan, packed));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
