"""Measure the real model, beside PyTorch on the same file, precision and threads: `make bench-model`.

Loading, memory, tokens a second at the prompt and in decoding; contenders take turns and medians are told.  Where
PyTorch and transformers are not installed its columns are empty.
"""

import argparse
import os
import statistics
import time
import warnings

for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)

import numpy as np
from threadpoolctl import threadpool_limits

from transformer_parts.models import weights
from transformer_parts.models.generation import Session, generate
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.weights import GGUFFile

try:
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
except ModuleNotFoundError:
    torch = None

PROMPTS = (128, 512, 2048)
NEW_TOKENS = 24


def seconds(run) -> float:
    """Return what one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def resident() -> float:
    """Return the memory of this process in MB, or NaN where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return float("nan")


class Ours:
    """The library."""

    name = "transformer_parts"

    def __init__(self):
        self.model = load_model(GGUFFile(weights.find()))

    def prefill(self, ids):
        """Return the session after a prompt."""
        session = Session(self.model, capacity=len(ids) + NEW_TOKENS)
        session.feed(ids)
        return session

    def decode(self, session):
        """Make the new tokens, greedy."""
        return list(generate(session, NEW_TOKENS))


class Theirs:
    """PyTorch by transformers, float32, its own cache."""

    name = "torch, transformers"

    def __init__(self):
        path = weights.find()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = transformers.AutoModelForCausalLM.from_pretrained(
                path.parent, gguf_file=path.name, dtype=torch.float32
            )

    def prefill(self, ids):
        """Return the cache and the last logits after a prompt."""
        with torch.no_grad():
            out = self.model(torch.tensor([ids]), use_cache=True, logits_to_keep=1)
        return [out.past_key_values, out.logits[0, -1]]

    def decode(self, state):
        """Make the new tokens, greedy, without the wrapper's own bookkeeping."""
        cache, logits = state
        made = []
        with torch.no_grad():
            for _ in range(NEW_TOKENS):
                made.append(int(logits.argmax()))
                out = self.model(torch.tensor([made[-1:]]), past_key_values=cache, use_cache=True)
                cache, logits = out.past_key_values, out.logits[0, -1]
        return made


def main() -> None:
    """Print one table for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    kinds = [Ours] + ([Theirs] if torch is not None else [])
    contenders = []
    for kind in kinds:
        before, start = resident(), time.perf_counter()
        contenders.append(kind())
        print(f"{kind.name}: loaded in {time.perf_counter() - start:.1f} s, {resident() - before:.0f} MB more resident")
    ours = contenders[0].model
    held = ours.embedding.nbytes + ours.final_norm.nbytes
    for layer in ours.layers:
        matrices = (layer.w_qkv, layer.w_o, layer.w_gate_up, layer.w_down, layer.attn_norm, layer.ffn_norm)
        held += sum(matrix.nbytes for matrix in matrices)
    print(f"{Ours.name}: weights {held / 1e6:.1f} MB")
    rng = np.random.default_rng(0)
    for threads in options.threads:
        if torch is not None:
            torch.set_num_threads(threads)
        with threadpool_limits(threads):
            print(f"\n{threads} thread{'s' * (threads > 1)}: tokens a second, medians of {options.rounds} rounds")
            for length in PROMPTS:
                ids = rng.integers(0, len(ours.embedding), length).tolist()
                report(f"prompt of {length}", contenders, lambda c, ids=ids: c.prefill(ids), length, options.rounds)
            ids = rng.integers(0, len(ours.embedding), PROMPTS[0]).tolist()
            # Nothing of the prompt is timed.
            states = {c.name: [c.prefill(ids) for _ in range(options.rounds + 1)] for c in contenders}
            made = [c.decode(states[c.name].pop()) for c in contenders]
            print(f"  same {NEW_TOKENS} tokens: {all(tokens == made[0] for tokens in made)}")
            report("decoding", contenders, lambda c, s=states: c.decode(s[c.name].pop()), NEW_TOKENS, options.rounds)


def report(title, contenders, run, tokens, rounds) -> None:
    """Let the contenders take turns and print the tokens a second of each."""
    times = {c.name: [] for c in contenders}
    for _ in range(rounds):
        for contender in contenders:
            times[contender.name].append(seconds(lambda c=contender: run(c)))
    rates = {name: tokens / statistics.median(values) for name, values in times.items()}
    print(f"  {title:16}" + "   ".join(f"{name} {rate:7.1f}" for name, rate in rates.items()))


if __name__ == "__main__":
    main()
