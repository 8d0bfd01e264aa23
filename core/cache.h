/*
 * cache.h - entries found by hash, in the order in which they were used last
 *
 * A list and a table of chains over nodes that their owners embed.  It owns nothing and compares
 * nothing: whoever looks something up walks the entries of its hash.  What is evicted follows from the
 * order of calls alone, so ranks that use their entries in the same order have the same ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CACHE_H
#define ZIPCCL_CORE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#define ZIPCCL_CACHE_CHAINS 1024u

/* First member of an entry. */
struct zipccl_cache_node {
    uint64_t hash;
    struct zipccl_cache_node *chain;         /* next of its chain */
    struct zipccl_cache_node *newer, *older; /* by last use */
};

struct zipccl_cache {
    struct zipccl_cache_node *chains[ZIPCCL_CACHE_CHAINS];
    struct zipccl_cache_node *newest, *oldest;
    size_t n;
};

/* Hash 'x' on top of 'hash', 0 to begin with; fast, and for one process only. */
static inline uint64_t zipccl_cache_hash(uint64_t hash, uint64_t x)
{
    hash = (hash ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* First entry of 'hash', or the next one after 'node'; NULL if there is none. */
struct zipccl_cache_node *zipccl_cache_first(const struct zipccl_cache *cache, uint64_t hash);
struct zipccl_cache_node *zipccl_cache_next(const struct zipccl_cache_node *node);

/* Put 'node' in as the newest. */
void zipccl_cache_add(struct zipccl_cache *cache, struct zipccl_cache_node *node, uint64_t hash);

/* Make it the newest again. */
void zipccl_cache_use(struct zipccl_cache *cache, struct zipccl_cache_node *node);

void zipccl_cache_remove(struct zipccl_cache *cache, struct zipccl_cache_node *node);

#endif
