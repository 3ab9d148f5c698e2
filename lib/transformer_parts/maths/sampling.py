r"""From logits to the next token: temperature, the k likeliest, the smallest set that holds the probability p.

References
----------
Fan, Lewis & Dauphin, "Hierarchical Neural Story Generation", arXiv 1805.04833, §5.4 (top-k).
Holtzman et al., "The Curious Case of Neural Text Degeneration", arXiv 1904.09751, §3.1 (top-p, "nucleus"),
§3.2 (top-k) and §3.3 (temperature).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require


def next_token_probabilities(
    logits: ArrayLike, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> NDArray[np.float64]:
    r"""Return the probabilities that a token is drawn with.

    .. math:: p_i = \frac{\exp(z_i / T)}{\sum_{j \in S} \exp(z_j / T)} \text{ for } i \in S, \text{ otherwise } 0

    S is first the `top_k` largest logits (with those that equal the k-th), then of these the smallest set of the
    likeliest whose probabilities sum to at least `top_p`; never empty.

    Parameters
    ----------
    logits : array_like, shape (V,); z
    temperature : float
        T, above 0.  Towards 0 the largest logit takes all.
    top_k : int, optional; at least 1; all if not given
    top_p : float, optional; above 0, at most 1

    Returns
    -------
    ndarray, shape (V,); float64, summing to 1

    Examples
    --------
    >>> z = np.log([0.5, 0.3, 0.15, 0.05])
    >>> next_token_probabilities(z, top_k=2).round(4).tolist()
    [0.625, 0.375, 0.0, 0.0]
    >>> next_token_probabilities(z, top_p=0.75).round(4).tolist()
    [0.625, 0.375, 0.0, 0.0]
    >>> next_token_probabilities(z, temperature=0.5).round(4).tolist()
    [0.6849, 0.2466, 0.0616, 0.0068]
    """
    z = _logits(logits)
    temperature = require.number("temperature", temperature, above=0)
    top_k, top_p = _settings(top_k, top_p)
    with np.errstate(over="ignore"):
        weights = np.exp((z - z.max()) / temperature)
    if top_k is not None:
        k = min(top_k, len(z))
        weights[z < np.partition(z, -k)[-k]] = 0.0
    # At 1 nothing is cut, not even what is too small to change the sum.
    if top_p is not None and top_p < 1:
        order = np.argsort(-weights, kind="stable")
        sums = np.cumsum(weights[order])
        kept = 1 + int(np.searchsorted(sums, top_p * sums[-1]))
        weights[order[kept:]] = 0.0
    return weights / weights.sum()


def sample(
    logits: ArrayLike,
    rng: np.random.Generator,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> int:
    """Draw a token; at temperature 0 take the one of the largest logit (the first of equals).

    Parameters
    ----------
    logits : array_like, shape (V,); of the next token
    rng : numpy Generator; one number of it is used for each token, none at temperature 0
    temperature, top_k, top_p : as in `next_token_probabilities`; temperature may be 0

    Returns
    -------
    int; from 0 to V − 1

    Examples
    --------
    >>> sample([0.0, 2.0, 1.0], np.random.default_rng(0), temperature=0)
    1
    """
    z = _logits(logits)
    top_k, top_p = _settings(top_k, top_p)
    require.instance("rng", rng, np.random.Generator)
    if require.number("temperature", temperature, minimum=0) == 0:
        return int(z.argmax())
    probabilities = next_token_probabilities(z, temperature=temperature, top_k=top_k, top_p=top_p)
    sums = np.cumsum(probabilities)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


def _logits(logits: ArrayLike) -> NDArray[np.float64]:
    z = require.array("logits", logits).astype(np.float64)
    require.ndim("logits", z, 1)
    return z


def _settings(top_k: int | None, top_p: float | None) -> tuple[int | None, float | None]:
    return (
        None if top_k is None else require.integer("top_k", top_k),
        None if top_p is None else require.number("top_p", top_p, above=0, maximum=1),
    )
