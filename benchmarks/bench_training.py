"""Train a small decoder to repeat random segments, in NumPy and in PyTorch, the same work step by step: `make bench`.

Both begin with the same weights and see the same batches, on one thread, in float32; the steps take turns, so that what
else the machine does falls on both.  Reported are the steps and the CPU seconds until the loss, averaged over ten
steps, is below a half, and the ratio of the CPU time of all steps.
"""

import os
from collections import deque
from collections.abc import Iterator
from time import process_time

# Slower kernels that some virtual machines name for old libraries; they would make the comparison unfair.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)

import numpy as np
from threadpoolctl import threadpool_limits

from transformer_parts.maths.decoder import StackConfig
from transformer_parts.maths.residual_stream import initialized
from transformer_parts.maths.training import Plan, repeated_segments, train

try:
    import torch
except ModuleNotFoundError:
    torch = None

CONFIG = StackConfig(vocab_size=64, n_layers=2, d_model=64, n_heads=2, d_ff=128, tied=False)
PLAN = Plan(steps=350, batch_size=32, length=64, peak=1e-2, floor=3e-4)
GOAL, TARGET_STEPS, TARGET_SECONDS = 0.5, 350, 25.0


def batches(plan: Plan, config: StackConfig):
    """Return the plan's batches anew: equal plans, equal batches."""
    rng = np.random.default_rng(plan.seed)
    sizes = {"batch_size": plan.batch_size, "length": plan.length, "vocab_size": config.vocab_size}
    return lambda _step: repeated_segments(rng, **sizes)


def numpy_losses(weights: dict, config: StackConfig, plan: Plan) -> Iterator[float]:
    """Yield the loss of each step of the library's own training."""
    for record in train(weights, config, plan, batches=batches(plan, config)):
        yield record.loss


def torch_losses(weights: dict, config: StackConfig, plan: Plan) -> Iterator[float]:
    """Yield the loss of each step of the same training in PyTorch, of its own functions."""
    functional = torch.nn.functional
    w = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items()}
    groups = [
        {"params": [p for p in w.values() if p.ndim > 1], "weight_decay": plan.weight_decay},
        {"params": [p for p in w.values() if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=plan.peak, betas=plan.betas, eps=plan.eps)
    frequencies = config.rope_base ** (-torch.arange(0, config.head_dim, 2) / config.head_dim)
    angle = torch.arange(plan.length)[:, None] * frequencies
    phases = torch.polar(torch.ones_like(angle), angle)

    def turned(x):
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * phases).flatten(-2)

    def heads(x):
        return x.unflatten(-1, (-1, config.head_dim)).transpose(1, 2).contiguous()

    def norm(name, x):
        return functional.rms_norm(x, (x.shape[-1],), w[name], config.eps)

    draw = batches(plan, config)
    for step in range(plan.steps):
        tokens, targets = map(torch.from_numpy, draw(step))
        x = w["embedding"][tokens]
        for i in range(config.n_layers):
            at = f"layers.{i}."
            normed = norm(f"{at}attn_norm", x)
            query, key, value = (heads(normed @ w[f"{at}w_{name}"]) for name in "qkv")
            mixed = functional.scaled_dot_product_attention(turned(query), turned(key), value, is_causal=True)
            x = x + mixed.transpose(1, 2).flatten(-2) @ w[f"{at}w_o"]
            normed = norm(f"{at}ffn_norm", x)
            x = x + (functional.silu(normed @ w[f"{at}w_gate"]) * (normed @ w[f"{at}w_up"])) @ w[f"{at}w_down"]
        logits = norm("final_norm", x) @ w["head"]
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(w.values()), plan.max_norm)
        for group in optimizer.param_groups:
            group["lr"] = plan.rate(step)
        optimizer.step()
        yield loss.item()


def main() -> None:
    """Train both side by side and print what it took."""
    weights = {name: w.astype(np.float32) for name, w in initialized(CONFIG).items()}
    contenders = {"NumPy, this library": numpy_losses(weights, CONFIG, PLAN)}
    if torch is not None:
        torch.set_num_threads(1)
        contenders["PyTorch"] = torch_losses(weights, CONFIG, PLAN)
    seconds = dict.fromkeys(contenders, 0.0)
    recent = {name: deque(maxlen=10) for name in contenders}
    reached = {}
    for step in range(PLAN.steps):
        for name, losses in contenders.items():
            start = process_time()
            recent[name].append(next(losses))
            seconds[name] += process_time() - start
            if name not in reached and len(recent[name]) == 10 and np.mean(recent[name]) < GOAL:
                reached[name] = step + 1, seconds[name]
    print("\ntraining: 2 layers, d = 64, 2 heads, 64 tokens, vocabulary 64, batches of 32, float32, one thread")
    for name, total in seconds.items():
        steps, spent = reached.get(name, (None, None))
        goal = f"never below {GOAL}" if steps is None else f"below {GOAL} after {steps} steps, {spent:.1f} CPU s"
        print(
            f"  {name:22} {goal}; {1e3 * total / PLAN.steps:.1f} CPU ms a step; last losses {np.mean(recent[name]):.3f}"
        )
    steps, spent = reached.get("NumPy, this library", (np.inf, np.inf))
    verdict = "met" if steps <= TARGET_STEPS and spent <= TARGET_SECONDS else "MISSED"
    print(f"  target: below {GOAL} within {TARGET_STEPS} steps and {TARGET_SECONDS:.0f} CPU s: {verdict}")
    if torch is not None:
        ratio = seconds["NumPy, this library"] / seconds["PyTorch"]
        print(f"  CPU time, ours / PyTorch = {ratio:.2f}  (target ≤ 1)  {'met' if ratio <= 1 else 'MISSED'}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
