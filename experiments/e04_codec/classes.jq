# classes.jq - results of `zipccl codec stat -J` by class of tensor, as tab-separated rows
#
# class, tensors, ratio, bound, Huffman; ratios are of all bytes of a class.  Use: jq -rs -f.
def kind:
  if .name | startswith("reshard.optim") then "optimizer state"
  elif .name | contains("grad_fp16_scaled") then "fp16 gradients, scaled"
  elif .name | contains("grad_fp16") then "fp16 gradients, unscaled"
  elif .name | contains("grad_fp32") then "fp32 gradients"
  elif .name | startswith("sparse.attn_probs") then "attention probabilities"
  elif .name | startswith("sparse.") then "sparse"
  elif .name | contains("padded") then "padded rows"
  elif .name | contains("param") then "parameters"
  elif .name | test("cp[.]d[kv]") then "dk, dv"
  elif .name | contains("grad.embed") then "embedding gradients"
  elif .name | contains("grad.head") then "head gradients"
  elif .name | startswith("reducescatter.grad") then "gradients"
  elif .name | startswith("alltoall") then "all-to-all"
  else "activations" end;

map(.tensors[] | select(.covered))
| group_by(kind)
| map({ class: (.[0] | kind),
        tensors: length,
        raw: map(.raw_bytes) | add,
        wire: map(.raw_bytes / .ratio) | add,
        bound: map(.raw_bytes / .bound_ratio) | add,
        huffman: map(.raw_bytes / .huffman_ratio) | add })
| sort_by(.raw / .bound)
| .[]
| [.class, .tensors, .raw / .wire, .raw / .bound, .raw / .huffman]
| @tsv
