"""The loss of each token of a text under the real model."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.models.smollm2 import SmolLM2


def token_losses(model: SmolLM2, hidden: NDArray, token_ids: ArrayLike, *, rows: int = 256) -> NDArray[np.float64]:
    r"""Return the loss of each token but the first, in nats.

    .. math:: \ell_t = -\ln p(y_t \mid y_0 \dots y_{t-1}), \qquad 1 \le t < L

    Parameters
    ----------
    model : SmolLM2
        For its last norm and its head.
    hidden : ndarray, shape (L, D) or (L − 1, D)
        The residual vectors of the tokens after the last layer; that of the last token is not read.
    token_ids : array_like of int, shape (L,)
        y, the tokens.
    rows : int
        How many rows of V logits are held at once.

    Returns
    -------
    ndarray, shape (L − 1,)
        float64.
    """
    targets = np.asarray(token_ids)[1:]
    out = np.empty(len(targets))
    for start in range(0, len(targets), rows):
        logits = model.logits(hidden[: len(targets)][start : start + rows])
        logits -= logits.max(axis=-1, keepdims=True)
        right = np.take_along_axis(logits, targets[start : start + rows, None], axis=-1)[:, 0]
        out[start : start + rows] = np.log(np.exp(logits, out=logits).sum(axis=-1, dtype=np.float64)) - right
    return out
