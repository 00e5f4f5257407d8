/*
 * huffman_table.c - optimal Huffman tables from symbol counts (ITU-T T.81, annex K.2).
 */
#include "huffman_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"

#define DEPTH_MAX 64 /* of a tree before it is limited; it has fewer than 2^24 leaves */

/* Shell's sort. Most tables have a few dozen keys, and qsort() would allocate memory. */
static void sort(uint64_t *key, int n)
{
	static const int gaps[] = { 57, 23, 10, 4, 1 };

	for (size_t g = 0; g < COUNT_OF(gaps); g++)
		for (int i = gaps[g]; i < n; i++) {
			uint64_t k = key[i];
			int at = i;

			for (; at >= gaps[g] && key[at - gaps[g]] > k; at -= gaps[g])
				key[at] = key[at - gaps[g]];
			key[at] = k;
		}
}

/* Counts the leaves of the tree at each depth. The n >= 2 keys are sorted, rarest symbol first. */
static void tree_depths(const uint64_t *key, int n, unsigned at_depth[DEPTH_MAX])
{
	uint64_t sum[HUFFMAN_SYMBOLS + 1];
	int parent[2 * (HUFFMAN_SYMBOLS + 1)], leaf = 0, inner = 0, root = 2 * n - 2;
	uint8_t depth[2 * (HUFFMAN_SYMBOLS + 1)];

	assert(n >= 2); /* so that each node below the root has a parent */
	/* Joined nodes are made in ascending order. The rarest node is the first leaf or the first
	 * joined node that has no parent. */
	for (int made = 0; made < n - 1; made++) {
		sum[made] = 0;
		for (int i = 0; i < 2; i++) {
			bool is_leaf = inner == made || (leaf < n && key[leaf] / 512 <= sum[inner]);

			sum[made] += is_leaf ? key[leaf] / 512 : sum[inner];
			parent[is_leaf ? leaf++ : n + inner++] = n + made;
		}
	}
	memset(at_depth, 0, DEPTH_MAX * sizeof(*at_depth));
	depth[root] = 0;
	for (int node = root - 1; node >= 0; node--) {
		depth[node] = (uint8_t)(depth[parent[node]] + 1);
		assert(depth[node] < DEPTH_MAX);
		if (node < n)
			at_depth[depth[node]]++;
	}
}

/* Limits the depth to 16. Of a pair of deepest leaves, one replaces their parent. The other one and
 * a leaf higher up become children of a node in place of that leaf. */
static void limit_depth(unsigned at_depth[DEPTH_MAX])
{
	for (int i = DEPTH_MAX - 1; i > HUFFMAN_LENGTH_MAX; i--)
		while (at_depth[i] > 0) {
			int j = i - 2;

			while (at_depth[j] == 0)
				j--;
			at_depth[i] -= 2;
			at_depth[i - 1]++;
			at_depth[j + 1] += 2;
			at_depth[j]--;
		}
}

static void make_codes(const struct huffman_table *t, uint32_t *code)
{
	const uint8_t *symbol = t->symbol;
	uint32_t next = 0;

	for (unsigned length = 1; length <= HUFFMAN_LENGTH_MAX; length++, next <<= 1)
		for (unsigned i = 0; i < t->bits[length]; i++, symbol++) {
			unsigned follow = *symbol & 15;

			code[*symbol] = next++ << follow << 5 | (length + follow);
		}
}

void huffman_table_make(const uint32_t *count, struct huffman_table *t, uint32_t *code)
{
	uint64_t key[HUFFMAN_SYMBOLS + 1];
	unsigned at_depth[DEPTH_MAX], longest = HUFFMAN_LENGTH_MAX;
	int n = 0;

	/* A symbol that never occurs is the rarest. It gets the reserved code of all ones. */
	key[n++] = HUFFMAN_SYMBOLS;
	for (unsigned s = 0; s < HUFFMAN_SYMBOLS; s++)
		if (count[s])
			key[n++] = (uint64_t)count[s] * 512 + s;
	assert(n > 1);
	sort(key, n);
	tree_depths(key, n, at_depth);
	limit_depth(at_depth);
	while (at_depth[longest] == 0)
		longest--;
	at_depth[longest]--;
	memset(t, 0, sizeof(*t));
	for (unsigned i = 1; i <= HUFFMAN_LENGTH_MAX; i++)
		t->bits[i] = (uint8_t)at_depth[i];
	for (int i = 1; i < n; i++)
		t->symbol[i - 1] = (uint8_t)(key[n - i] % 512);
	make_codes(t, code);
}
