/*
 * test_plan_print.c - plans as text, one of each kind
 *
 * Two nodes of two ranks, two rings, 1001 bf16 elements.  Read the expected texts as the
 * description of the pipelines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/plan_cases.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *strategy;
    enum zipccl_op op;
    uint32_t nchunks;
    const char *text;
} printed[] = {
    {"native", ZIPCCL_ALL_REDUCE, 1,
     "plan \"native x2\": all_reduce bf16 count 1001 on 4 ranks sum, 1 chunks of 1001, "
     "0 slots, class 0, staging 0 + 0 B, 1 steps\n"
     "   0 wire  native   chunk 0 ring x2  send -> recv  n 1001\n"},
    {"exact direct", ZIPCCL_SENDRECV, 1,
     "plan \"exact direct\": sendrecv bf16 count 1001 on 4 ranks, 1 chunks of 1001, "
     "raw below 512, 1 slots, class 0, staging 2048 + 2048 B, 5 steps\n"
     "   0 codec encode   chunk 0 pairs exact  send+displ -> tx[0]  "
     "n 1001 capacity 2034\n"
     "   1 wire  sizes    chunk 0 pairs exact  tx[0]  n 1001 after 0\n"
     "   2 wire  exchange chunk 0 pairs exact direct  tx[0] -> rx[0]  "
     "n 1001 capacity 2034 sizes of 1 after 0,1\n"
     "   3 codec copy     chunk 0 pairs  send+displ -> recv+displ  n 1001\n"
     "   4 codec decode   chunk 0 pairs exact  rx[0] -> recv+displ  "
     "n 1001 capacity 2034 after 2\n"},
    {"raw direct", ZIPCCL_ALLTOALL, 1,
     "plan \"raw direct\": alltoall bf16 count 1001 on 4 ranks, 1 chunks of 1001, 0 slots, "
     "class 0, staging 0 + 0 B, 2 steps\n"
     "   0 wire  exchange chunk 0 all-to-all raw direct  send+p*1001 -> recv+p*1001  n 1001\n"
     "   1 codec copy     chunk 0 all-to-all  send+p*1001 -> recv+p*1001  n 1001\n"},
    {"raw ring", ZIPCCL_ALL_GATHER, 1,
     "plan \"raw ring x2\": all_gather bf16 count 1001 on 4 ranks, 1 chunks of 1001, 0 slots, "
     "class 0, staging 0 + 0 B, 1 steps\n"
     "   0 wire  exchange chunk 0 all-gather raw ring x2  send -> recv+p*1001  n 1001\n"},
    {"fixed ring", ZIPCCL_ALL_GATHER, 5,
     "plan \"fixed ring x2\": all_gather bf16 count 1001 on 4 ranks, 5 chunks of 201, "
     "4 slots, class 0, staging 1792 + 7168 B, 26 steps\n"
     "   0 codec encode   chunk 0 all-gather fixed  send -> tx[0]  n 201 capacity 434\n"
     "   1 wire  exchange chunk 0 all-gather fixed ring x2  tx[0] -> rx[0]+p*434  "
     "n 201 capacity 434 after 0\n"
     "   2 wire  resolve  chunk 0 all-gather fixed  rx[0]+p*434  n 201 capacity 434 after 1\n"
     "   3 wire  exchange chunk 0 all-gather raw ring x2  send -> rx[0]+p*402  "
     "n 201 raw of 2 after 2\n"
     "   4 codec encode   chunk 1 all-gather fixed  send+201 -> tx[1]+448  n 201 capacity 434\n"
     "   5 wire  exchange chunk 1 all-gather fixed ring x2  tx[1]+448 -> rx[1]+1792+p*434  "
     "n 201 capacity 434 after 4\n"
     "   6 wire  resolve  chunk 1 all-gather fixed  rx[1]+1792+p*434  "
     "n 201 capacity 434 after 5\n"
     "   7 wire  exchange chunk 1 all-gather raw ring x2  send+201 -> rx[1]+1792+p*402  "
     "n 201 raw of 6 after 6\n"
     "   8 codec encode   chunk 2 all-gather fixed  send+402 -> tx[2]+896  n 201 capacity 434\n"
     "   9 wire  exchange chunk 2 all-gather fixed ring x2  tx[2]+896 -> rx[2]+3584+p*434  "
     "n 201 capacity 434 after 8\n"
     "  10 wire  resolve  chunk 2 all-gather fixed  rx[2]+3584+p*434  "
     "n 201 capacity 434 after 9\n"
     "  11 wire  exchange chunk 2 all-gather raw ring x2  send+402 -> rx[2]+3584+p*402  "
     "n 201 raw of 10 after 10\n"
     "  12 codec encode   chunk 3 all-gather fixed  send+603 -> tx[3]+1344  "
     "n 201 capacity 434\n"
     "  13 wire  exchange chunk 3 all-gather fixed ring x2  tx[3]+1344 -> rx[3]+5376+p*434  "
     "n 201 capacity 434 after 12\n"
     "  14 wire  resolve  chunk 3 all-gather fixed  rx[3]+5376+p*434  "
     "n 201 capacity 434 after 13\n"
     "  15 wire  exchange chunk 3 all-gather raw ring x2  send+603 -> rx[3]+5376+p*402  "
     "n 201 raw of 14 after 14\n"
     "  16 codec copy     chunk 0 all-gather  send -> recv+p*1001  n 1001\n"
     "  17 codec decode   chunk 0 all-gather fixed  rx[0]+p*434 -> recv+p*1001  "
     "n 201 capacity 434 raw of 2 after 3\n"
     "  18 codec encode   chunk 4 all-gather fixed  send+804 -> tx[0]  "
     "n 197 capacity 426 after 3\n"
     "  19 wire  exchange chunk 4 all-gather fixed ring x2  tx[0] -> rx[0]+p*426  "
     "n 197 capacity 426 after 18,17\n"
     "  20 wire  resolve  chunk 4 all-gather fixed  rx[0]+p*426  n 197 capacity 426 after 19\n"
     "  21 wire  exchange chunk 4 all-gather raw ring x2  send+804 -> rx[0]+p*394  "
     "n 197 raw of 20 after 20\n"
     "  22 codec decode   chunk 1 all-gather fixed  rx[1]+1792+p*434 -> recv+201+p*1001  "
     "n 201 capacity 434 raw of 6 after 7\n"
     "  23 codec decode   chunk 2 all-gather fixed  rx[2]+3584+p*434 -> recv+402+p*1001  "
     "n 201 capacity 434 raw of 10 after 11\n"
     "  24 codec decode   chunk 3 all-gather fixed  rx[3]+5376+p*434 -> recv+603+p*1001  "
     "n 201 capacity 434 raw of 14 after 15\n"
     "  25 codec decode   chunk 4 all-gather fixed  rx[0]+p*426 -> recv+804+p*1001  "
     "n 197 capacity 426 raw of 20 after 21\n"},
    {"fixed direct", ZIPCCL_ALLTOALLV, 1,
     "plan \"fixed direct\": alltoallv bf16 count 1001 on 4 ranks, 1 chunks of 1001, "
     "raw below 512, 1 slots, class 0, staging 8192 + 8192 B, 6 steps\n"
     "   0 codec encode   chunk 0 pairs fixed  send+displ -> tx[0]+p*2048  "
     "n 1001 capacity 1728\n"
     "   1 wire  exchange chunk 0 pairs fixed direct  tx[0]+p*2048 -> rx[0]+p*2048  "
     "n 1001 capacity 1728 after 0\n"
     "   2 wire  resolve  chunk 0 pairs fixed  rx[0]+p*2048  n 1001 capacity 1728 after 1\n"
     "   3 wire  exchange chunk 0 pairs raw direct  send+displ -> rx[0]+p*2048  "
     "n 1001 raw of 2 after 2\n"
     "   4 codec copy     chunk 0 pairs  send+displ -> recv+displ  n 1001\n"
     "   5 codec decode   chunk 0 pairs fixed  rx[0]+p*2048 -> recv+displ  "
     "n 1001 capacity 1728 raw of 2 after 3\n"},
    {"exact ring", ZIPCCL_BROADCAST, 2,
     "plan \"exact ring x2\": broadcast bf16 count 1001 on 4 ranks root 3, 2 chunks of 501, "
     "2 slots, class 0, staging 2176 + 2176 B, 9 steps\n"
     "   0 codec encode   chunk 0 broadcast exact root 3  send -> tx[0]  n 501 capacity 1034\n"
     "   1 wire  sizes    chunk 0 broadcast exact root 3  tx[0]  n 501 after 0\n"
     "   2 wire  exchange chunk 0 broadcast exact ring x2 root 3  tx[0] -> rx[0]  "
     "n 501 capacity 1034 sizes of 1 after 0,1\n"
     "   3 codec encode   chunk 1 broadcast exact root 3  send+501 -> tx[1]+1088  "
     "n 500 capacity 1032\n"
     "   4 wire  sizes    chunk 1 broadcast exact root 3  tx[1]+1088  n 500 after 3\n"
     "   5 wire  exchange chunk 1 broadcast exact ring x2 root 3  tx[1]+1088 -> rx[1]+1088  "
     "n 500 capacity 1032 sizes of 4 after 3,4\n"
     "   6 codec copy     chunk 0 broadcast root 3  send -> recv  n 1001\n"
     "   7 codec decode   chunk 0 broadcast exact root 3  rx[0] -> recv  "
     "n 501 capacity 1034 after 2\n"
     "   8 codec decode   chunk 1 broadcast exact root 3  rx[1]+1088 -> recv+501  "
     "n 500 capacity 1032 after 5\n"},
    {"fixed two-level", ZIPCCL_ALL_REDUCE, 1,
     "plan \"fixed two-level\": all_reduce bf16 count 1001 on 4 ranks sum, 1 chunks of 251 "
     "of shards of 251, 1 slots, class 0, staging 1152 + 2048 + tmp 1024 + acc 1536 B, 13 "
     "steps\n"
     "   0 wire  exchange chunk 0 node all-to-all x2 raw direct  send+r*251 -> "
     "rx[0]+p*1024+b*512  n 251\n"
     "   1 codec reduce   chunk 0 node all-to-all x2 raw sum first round  "
     "rx[0]+p*1024+b*512 and send+r*251 -> tmp[0]+b*512  n 251 after 0\n"
     "   2 codec encode   chunk 0 rail all-to-all fixed  tmp[0]+p*512 -> tx[0]+p*576  n 251 "
     "capacity 534 after 0\n"
     "   3 wire  exchange chunk 0 rail all-to-all fixed direct  tx[0]+p*576 -> rx[0]+p*576  "
     "n 251 capacity 534 after 2\n"
     "   4 wire  resolve  chunk 0 rail all-to-all fixed  rx[0]+p*576  n 251 capacity 534 "
     "after 2\n"
     "   5 wire  exchange chunk 0 rail all-to-all raw direct  tmp[0]+p*512 -> rx[0]+p*576  "
     "n 251 raw of 4 after 2\n"
     "   6 codec reduce   chunk 0 rail all-to-all fixed sum first round  rx[0]+p*576 and "
     "tmp[0]+p*512 -> recv+r*251  n 251 capacity 534 raw of 4 after 5\n"
     "   7 codec encode   chunk 0 rail all-gather fixed  recv+r*251 -> tx[0]  n 251 "
     "capacity 534 after 5\n"
     "   8 wire  exchange chunk 0 rail all-gather fixed direct  tx[0] -> rx[0]+p*576  n 251 "
     "capacity 534 after 7\n"
     "   9 wire  resolve  chunk 0 rail all-gather fixed  rx[0]+p*576  n 251 capacity 534 "
     "after 7\n"
     "  10 wire  exchange chunk 0 rail all-gather raw direct  recv+r*251 -> rx[0]+p*576  n "
     "251 raw of 9 after 7\n"
     "  11 codec decode   chunk 0 rail all-gather fixed  rx[0]+p*576 -> recv+r*251  n 251 "
     "capacity 534 raw of 9 after 10\n"
     "  12 wire  exchange chunk 0 node all-gather x2 raw direct  recv+r*251 -> recv+r*251  "
     "n 251 after 11\n"},
    {"exact two-level", ZIPCCL_ALLTOALL, 1,
     "plan \"exact two-level\": alltoall bf16 count 1001 on 4 ranks, 1 chunks of 1001, 1 "
     "slots, class 0, staging 8192 + 8192 + tmp 8192 B, 8 steps\n"
     "   0 codec copy     chunk 0 node all-to-all x2 remote  send+r*1001 -> "
     "tmp[0]+p*2048+b*4096  n 1001\n"
     "   1 codec copy     chunk 0 all-to-all  send+r*1001 -> recv+r*1001  n 1001\n"
     "   2 wire  exchange chunk 0 node all-to-all x2 remote raw direct  send+r*1001 -> "
     "tmp[0]+p*2048+b*4096  n 1001 after 1\n"
     "   3 wire  exchange chunk 0 node all-to-all raw direct  send+r*1001 -> recv+r*1001  n "
     "1001 after 1\n"
     "   4 codec encode   chunk 0 rail all-to-all x2 exact  tmp[0]+p*4096+b*2048 -> "
     "tx[0]+p*4096+b*2048  n 1001 capacity 2034 after 3\n"
     "   5 wire  sizes    chunk 0 rail all-to-all x2 exact  tx[0]+p*4096+b*2048  n 1001 "
     "after 4\n"
     "   6 wire  exchange chunk 0 rail all-to-all x2 exact direct  tx[0]+p*4096+b*2048 -> "
     "rx[0]+p*4096+b*2048  n 1001 capacity 2034 sizes of 5 after 4\n"
     "   7 codec decode   chunk 0 rail all-to-all x2 exact  rx[0]+p*4096+b*2048 -> "
     "recv+r*1001  n 1001 capacity 2034 after 6\n"},
    {"raw two-level", ZIPCCL_BROADCAST, 2,
     "plan \"raw two-level\": broadcast bf16 count 1001 on 4 ranks root 3, 2 chunks of 501, "
     "2 slots, class 0, staging 0 + 0 B, 6 steps\n"
     "   0 wire  exchange chunk 0 rail broadcast raw direct root 3  send -> recv  n 501\n"
     "   1 wire  exchange chunk 1 rail broadcast raw direct root 3  send+501 -> recv+501  n "
     "500\n"
     "   2 codec copy     chunk 0 broadcast root 3  send -> recv  n 501 after 0\n"
     "   3 wire  exchange chunk 0 node broadcast raw direct root 3  recv -> recv  n 501 "
     "after 2\n"
     "   4 codec copy     chunk 1 broadcast root 3  send+501 -> recv+501  n 500 after 1\n"
     "   5 wire  exchange chunk 1 node broadcast raw direct root 3  recv+501 -> recv+501  n "
     "500 after 4\n"},
    {"raw direct", ZIPCCL_REDUCE_SCATTER, 2,
     "plan \"raw direct\": reduce_scatter bf16 count 1001 on 4 ranks sum, 2 chunks of 501, "
     "2 slots, class 0, staging 0 + 8192 + acc 2048 B, 4 steps\n"
     "   0 wire  exchange chunk 0 all-to-all raw direct  send+r*1001 -> rx[0]+p*1024  n 501\n"
     "   1 wire  exchange chunk 1 all-to-all raw direct  send+501+r*1001 -> "
     "rx[1]+4096+p*1024  n 500\n"
     "   2 codec reduce   chunk 0 all-to-all raw sum first round  rx[0]+p*1024 and "
     "send+r*1001 -> recv  n 501 after 0\n"
     "   3 codec reduce   chunk 1 all-to-all raw sum first round  rx[1]+4096+p*1024 and "
     "send+501+r*1001 -> recv+501  n 500 after 1\n"},
    {"exact split", ZIPCCL_SENDRECV, 1,
     "plan \"exact split\": sendrecv bf16 count 40000 on 4 ranks, 1 chunks of 40000, raw below "
     "512, 1 slots, class 0, staging 100672 + 100672 B, 7 steps\n"
     "   0 codec encode   chunk 0 pairs exact early  send+displ -> tx[0]  n 40000 capacity 80032\n"
     "   1 wire  exchange chunk 0 pairs exact early direct  tx[0] -> rx[0]  n 40000 capacity 80032 "
     "after 0\n"
     "   2 codec encode   chunk 0 pairs exact rest  send+displ -> tx[0]  n 40000 capacity 80032\n"
     "   3 wire  sizes    chunk 0 pairs exact rest  tx[0]  n 40000 after 2\n"
     "   4 wire  exchange chunk 0 pairs exact rest direct  tx[0] -> rx[0]  n 40000 capacity 80032 "
     "sizes of 3 after 2,3\n"
     "   5 codec copy     chunk 0 pairs  send+displ -> recv+displ  n 40000\n"
     "   6 codec decode   chunk 0 pairs exact rest  rx[0] -> recv+displ  n 40000 capacity 80032 "
     "after 4\n"},
    {"fixed split", ZIPCCL_BROADCAST, 1,
     "plan \"fixed split x2\": broadcast bf16 count 40000 on 4 ranks root 3, 1 chunks of 40000, 1 "
     "slots, class 0, staging 80000 + 80000 B, 9 steps\n"
     "   0 codec encode   chunk 0 broadcast fixed early root 3  send -> tx[0]  n 40000 capacity "
     "64512\n"
     "   1 wire  exchange chunk 0 broadcast fixed early ring x2 root 3  tx[0] -> rx[0]  n 40000 "
     "capacity 64512 after 0\n"
     "   2 codec encode   chunk 0 broadcast fixed rest root 3  send -> tx[0]  n 40000 capacity "
     "64512\n"
     "   3 wire  exchange chunk 0 broadcast fixed head ring x2 root 3  tx[0] -> rx[0]  n 40000 "
     "capacity 64512 after 2\n"
     "   4 wire  exchange chunk 0 broadcast fixed tail ring x2 root 3  tx[0] -> rx[0]  n 40000 "
     "capacity 64512 after 2\n"
     "   5 wire  resolve  chunk 0 broadcast fixed rest root 3  rx[0]  n 40000 capacity 64512 after "
     "4\n"
     "   6 wire  exchange chunk 0 broadcast raw ring x2 root 3  send -> rx[0]  n 40000 raw of 5 "
     "after 5\n"
     "   7 codec copy     chunk 0 broadcast root 3  send -> recv  n 40000\n"
     "   8 codec decode   chunk 0 broadcast fixed rest root 3  rx[0] -> recv  n 40000 capacity "
     "64512 raw of 5 after 6\n"},
};

Test(plan_print, shows_one_plan_of_each_kind)
{
    struct zipccl_topology *t = make_topology(2, 2);

    for (unsigned i = 0; i < sizeof printed / sizeof *printed; i++) {
        struct zipccl_call call = make_call(
            printed[i].op, strstr(printed[i].strategy, "split") != NULL ? 40000 : 1001, 4);
        struct zipccl_plan *plan = make_plan(printed[i].strategy, &call, t, printed[i].nchunks);
        char *text = NULL;
        size_t nbytes = 0;
        FILE *out = open_memstream(&text, &nbytes);

        cr_assert_not_null(out);
        zipccl_plan_print(plan, out);
        fclose(out);
        cr_assert_str_eq(text, printed[i].text);
        free(text);
        zipccl_plan_destroy(plan);
    }
    zipccl_topology_destroy(t);
}
