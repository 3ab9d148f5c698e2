"""Generating text: a model with its cache, fed with tokens and asked for the next one."""

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, sampling
from transformer_parts.maths.cache import KVCache, stack_step
from transformer_parts.models.smollm2 import SmolLM2


class Session:
    """One text in the making: the tokens so far, and their keys and values in every layer.

    Parameters
    ----------
    model : SmolLM2
    capacity : int
        Tokens to reserve room for.  A longer text finds room too, by copying what is there.

    Examples
    --------
    With the weights there, ``Session(model).feed(ids)`` gives the logits of the next token, and
    ``list(generate(session, 20))`` twenty tokens.
    """

    @require.door
    def __init__(self, model: SmolLM2, *, capacity: int = 512):
        self.model = model
        self._caches = [KVCache(capacity=capacity) for _ in model.layers]
        self._tokens: list[int] = []
        self._logits: NDArray[np.float32] | None = None

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens so far."""
        return tuple(self._tokens)

    @property
    def logits(self) -> NDArray[np.float32]:
        """The logits of the next token, (V,)."""
        if self._logits is None:
            raise require.refusal("logits", "a session whose last token was not fed just now", "one after `feed`")
        return self._logits

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values of all layers."""
        return sum(cache.nbytes for cache in self._caches)

    def feed(self, token_ids: ArrayLike, *, chunk: int = 2048) -> NDArray[np.float32]:
        """Take in tokens after those there are and return the logits of the next one.

        Parameters
        ----------
        token_ids : array_like of int, shape (L,); the prompt, or a part of it, or one token
        chunk : int; most tokens that are run at once: it bounds the memory and changes no result beyond rounding

        Returns
        -------
        ndarray, shape (V,); logits

        Raises
        ------
        ValueError
            If a token is not one of the model's, or there is none; the session is as it was then.
        """
        hidden = self.hidden(token_ids, chunk=chunk)
        self._logits = self.model.logits(hidden[-1])
        return self._logits

    def hidden(self, token_ids: ArrayLike, *, chunk: int = 2048) -> NDArray[np.float32]:
        """Take in tokens as `feed` does and return their residual vectors after the last layer, (L, D)."""
        x = self.model.embed(token_ids)
        chunk = require.integer("chunk", chunk)
        if x.ndim != 2:
            raise require.refusal("token_ids", f"shape {x.shape[:-1]}", "(L,)")
        before, out = len(self._tokens), np.empty_like(x)
        try:
            for start in range(0, len(x), chunk):
                part = slice(start, start + chunk)
                out[part] = stack_step(self.model.layers, x[part], self._caches)
        except BaseException:
            self._cut(before)
            raise
        self._tokens += np.asarray(token_ids).tolist()
        self._logits = None
        return out

    def rewind(self, length: int) -> None:
        """Forget every token after the first `length`."""
        length = require.integer("length", length, minimum=0, maximum=len(self._tokens))
        self._cut(length)
        del self._tokens[length:]
        self._logits = None

    def prompt(self, token_ids: ArrayLike, *, chunk: int = 2048) -> NDArray[np.float32]:
        """Make these the tokens and return the logits of the next one; the texts' common beginning is kept.

        The last token is run again in any case, for its logits.  After a ValueError the session is as before.
        """
        ids = require.indices("token_ids", token_ids, len(self.model.embedding))
        require.ndim("token_ids", ids, 1)
        chunk, wanted = require.integer("chunk", chunk), ids.tolist()
        same = next(
            (i for i, (one, other) in enumerate(zip(self._tokens, wanted, strict=False)) if one != other),
            min(len(self._tokens), len(wanted)),
        )
        self.rewind(max(0, min(same, len(wanted) - 1)))
        return self.feed(wanted[len(self._tokens) :], chunk=chunk)

    def _cut(self, length: int) -> None:
        for cache in self._caches:
            if len(cache) > length:
                cache.truncate(length)


@require.door
def generate(
    session: Session,
    max_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    stop: Collection[int] = (),
) -> Iterator[int]:
    """Yield one new token after another, each fed to the session before the next is asked for.

    Parameters
    ----------
    session : Session; after `Session.feed`
    max_tokens : int; most tokens to make
    temperature : float; 0 takes the likeliest token each time (greedy); above 0 tokens are drawn
    top_k, top_p : as in `sampling.next_token_probabilities`
    seed : int; the same seed and session give the same tokens
    stop : collection of int
        Tokens that end the text, such as the model's ``<|im_end|>``; such a token is yielded and not fed.

    Yields
    ------
    int; a token
    """
    stop = [require.integer("stop", token, minimum=0) for token in require.members("stop", stop)]
    rng = np.random.default_rng(require.integer("seed", seed, minimum=0))
    for _ in range(require.integer("max_tokens", max_tokens)):
        token = sampling.sample(session.logits, rng, temperature=temperature, top_k=top_k, top_p=top_p)
        if token not in stop:
            session.feed([token])
        yield token
        if token in stop:
            return
