"""How wide a gated feed-forward layer is made so that it costs what a plain one costs, or by design more."""

from dataclasses import dataclass
from typing import Literal

from transformer_parts.maths import require
from transformer_parts.maths.budget.parameters import ffn_parameters

#: The most that rounding may change a budget, as a share of it, and still be called rounding.
MOST_BY_ROUNDING = 0.05


def equal_budget_d_ff(d_ff: int) -> float:
    """Return the gated width 2·d_ff/3, at which three matrices cost what two of width d_ff cost.

    From 3·D·f = 2·D·d_ff; D cancels.  For the usual d_ff = 4·D it is 8·D/3, which is an integer only where 3
    divides D: `llama_d_ff` and its like round it.

    Parameters
    ----------
    d_ff : int; width of the plain layer

    Returns
    -------
    float; width of the gated one, as the equation has it: not rounded

    Source: Shazeer, arXiv:2002.05202, §2 (the factor 2/3, below eq. 6).

    Examples
    --------
    >>> equal_budget_d_ff(24), round(equal_budget_d_ff(4 * 512), 2)
    (16.0, 1365.33)
    """
    return 2 * require.integer("d_ff", d_ff) / 3


@dataclass(frozen=True)
class LlamaWidth:
    """The steps of the Llama code from D to the width of its gated feed-forward layer.

    Attributes
    ----------
    d_model : int; D
    plain : int; 4·D, what a plain layer would have
    two_thirds : int; ⌊2·4D/3⌋, the equal budget
    multiplied : int; ⌊multiplier·two_thirds⌋
    d_ff : int; F: `multiplied`, up to the next multiple
    """

    d_model: int
    plain: int
    two_thirds: int
    multiplied: int
    d_ff: int

    @property
    def ratio(self) -> float:
        """d_ff/D: 8/3 and a little for an equal budget, 3.5 for Llama 3."""
        return self.d_ff / self.d_model


def llama_d_ff(d_model: int, *, multiple_of: int = 256, multiplier: float = 1.0) -> LlamaWidth:
    """Return the width that the Llama code makes of D, step by step.

    4·D → ⌊2·4D/3⌋ → ⌊multiplier·that⌋ → up to the next multiple of `multiple_of`.  Two different things happen
    here: the last step aligns the width to the hardware and costs under one multiple; the multiplier raises the
    budget on purpose (1.3 gives Llama 3 its 3.5·D; in Llama 2 70B it spends what grouped kv heads save).

    Parameters
    ----------
    d_model : int; D
    multiple_of : int; alignment
    multiplier : float; ``ffn_dim_multiplier`` of the published ``params.json``; 1 where that has none

    Returns
    -------
    LlamaWidth : every step; its `d_ff` is the width

    References
    ----------
    ``FeedForward.__init__`` in ``llama/model.py`` of github.com/meta-llama/llama3; Touvron et al.,
    arXiv:2307.09288, appendix A.2.1 (why the multiplier).

    Examples
    --------
    >>> llama_d_ff(4096, multiple_of=1024, multiplier=1.3)
    LlamaWidth(d_model=4096, plain=16384, two_thirds=10922, multiplied=14198, d_ff=14336)
    """
    d_model = require.integer("d_model", d_model)
    multiple_of = require.integer("multiple_of", multiple_of)
    multiplier = require.number("multiplier", multiplier, above=0, maximum=1e9)
    plain = 4 * d_model
    two_thirds = 2 * plain // 3
    multiplied = int(multiplier * two_thirds)
    if multiplied == 0:
        wanted = f"at least {1 / two_thirds:g}, which leaves one unit"
        raise require.refusal("multiplier", repr(multiplier), wanted)
    return LlamaWidth(d_model, plain, two_thirds, multiplied, -(-multiplied // multiple_of) * multiple_of)


@dataclass(frozen=True)
class BudgetMatch:
    """A feed-forward layer's matrices compared with those of a plain layer.

    Attributes
    ----------
    parameters : int; the layer's
    reference : int; the plain layer's
    verdict : {"equal", "rounded", "different"}
        "rounded" where alignment explains the difference and the difference is small.
    """

    parameters: int
    reference: int
    verdict: Literal["equal", "rounded", "different"]

    @property
    def difference(self) -> int:
        """Parameters above (or, negative, below) the reference."""
        return self.parameters - self.reference

    @property
    def ratio(self) -> float:
        """Parameters over reference."""
        return self.parameters / self.reference


def match_budget(
    kind: Literal["gated", "mlp"],
    d_model: int,
    d_ff: int,
    *,
    reference_d_ff: int | None = None,
    multiple_of: int = 1,
) -> BudgetMatch:
    """Compare a feed-forward layer with a plain one of width `reference_d_ff` (4·D if not given); no biases.

    The verdict is "equal" for the same number, "rounded" where the width is less than one multiple away from
    the equal one and the difference at most `MOST_BY_ROUNDING`, 5 % of the reference, and otherwise "different":
    a multiple that is as large as the width itself explains any difference and makes no budget match.

    Parameters
    ----------
    kind : {"gated", "mlp"}; of the layer that is compared
    d_model : int; D, of both
    d_ff : int; F, the layer's hidden width
    reference_d_ff : int, optional
        The plain layer's hidden width.  Default 4·D.
    multiple_of : int; what F was aligned to; 1 allows for no rounding

    Returns
    -------
    BudgetMatch : both numbers and the verdict

    Source: Shazeer, arXiv:2002.05202, §2 (why the budgets should match).

    Examples
    --------
    >>> llama_1, llama_3 = (match_budget("gated", 4096, f, multiple_of=256) for f in (11008, 14336))
    >>> print(llama_1.verdict, f"{llama_1.ratio:.4f},", llama_3.verdict, f"{llama_3.ratio:.4f}")
    rounded 1.0078, different 1.3125
    """
    d_model = require.integer("d_model", d_model)
    parameters = ffn_parameters(kind, d_model, d_ff)
    if reference_d_ff is None:
        reference_d_ff = 4 * d_model
    reference = ffn_parameters("mlp", d_model, require.integer("reference_d_ff", reference_d_ff))
    one_multiple = ffn_parameters(kind, d_model, require.integer("multiple_of", multiple_of))
    excess = abs(parameters - reference)
    rounded = excess < one_multiple and excess <= MOST_BY_ROUNDING * reference
    verdict = "equal" if excess == 0 else "rounded" if rounded else "different"
    return BudgetMatch(parameters, reference, verdict)
