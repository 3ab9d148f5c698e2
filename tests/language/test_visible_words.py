"""The check of the seam sees a word that escapes, and nothing else."""

import pytest
from visible_words import escaped


@pytest.mark.parametrize(
    "text",
    [
        "⟦turned by⟧ 3.1e-05 ⟦rad⟧",
        '<p title="⟦a title⟧">⟦words⟧ <code>not words</code> 3</p><style>.tp { color: red }</style>',
        "head_dim 128, n_kv_heads 8, Llama 2",
        "⟦the model <em>with</em>⟧ `some code`",
        "R(mθ)q, x < y",
        "⟦token⟧ “ the”",
        "12 'past': 0.4",
        "<tr><th>RMSNorm</th><td>3</td></tr>",
        '<progress class="any words" max="3"></progress>',
        "",
    ],
)
def test_what_is_marked_or_no_word_passes(text):
    assert escaped(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a word ⟦marked⟧ more", ["word", "more"]),
        ('<img alt="a picture">', ["picture"]),
        ('<button title="press" aria-label="⟦stop⟧">⟦go⟧</button>', ["press"]),
        ("<code>fine</code> not fine", ["not", "fine"]),
        ("⟦turned⟧ 3 of ⟦all⟧", ["of"]),
        ("12 Größen", ["Größen"]),
        ("⟦a⟧&nbsp;word", ["word"]),
        ("the heads' own and the model's", ["the", "heads", "own", "and", "the", "model"]),
    ],
)
def test_a_word_outside_is_found(text, words):
    assert escaped(text) == words
