"""One step in a process of its own; prints its peak memory.

Arguments: way, batch, length, vocabulary, hidden, device.
"""

from __future__ import annotations

import json
import resource
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from smalt.policy.layouts import Row
from smalt.policy.logprobs import row_logprobs


def peak_bytes(device: str) -> int:
    """Of this process: resident memory on a CPU, allocated memory on a GPU."""
    if device != "cpu":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """One forward and backward of the mean log-probability of all completion tokens."""
    way, device = sys.argv[1], sys.argv[6]
    batch, length, vocabulary, hidden = map(int, sys.argv[2:6])
    torch.manual_seed(0)
    sizes = {"hidden_size": hidden, "intermediate_size": 2 * hidden, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, num_key_value_heads=2, **sizes)).to(device).train()
    ids = torch.randint(0, vocabulary, (batch, length))
    rows = [Row(row[:1], row[1:]) for row in ids.tolist()]
    if way == "ours":
        torch.autograd.backward(
            row_logprobs(model, rows[:1], 1.0).logprobs.sum()
        )  # the trial of the model's capabilities, too
    before = peak_bytes(device)
    if way == "ours":
        loss = row_logprobs(model, rows, 1.0).logprobs.mean()
    else:
        inputs = ids.to(device)
        logprobs = model(input_ids=inputs[:, :-1], use_cache=False).logits.float().log_softmax(-1)
        loss = logprobs.gather(-1, inputs[:, 1:, None]).mean()
    torch.autograd.backward(loss)
    print(json.dumps({"before": before, "peak": peak_bytes(device)}))


if __name__ == "__main__":
    main()
