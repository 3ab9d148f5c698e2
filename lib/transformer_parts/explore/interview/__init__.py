"""The interview page: question cards, claims, drills, the mock interview and the coding round."""

from transformer_parts.explore.interview.cards import PARTS, QuestionCards
from transformer_parts.explore.interview.claims import ClaimRound
from transformer_parts.explore.interview.coding import CodingRound
from transformer_parts.explore.interview.drills import DrillSheet
from transformer_parts.explore.interview.mock import MockSheet
from transformer_parts.explore.interview.sheet import Sheet, Timer

#: The sheets of the interview page, in its order.
SHEETS: tuple[type[Sheet], ...] = (QuestionCards, DrillSheet, ClaimRound, MockSheet, CodingRound)

__all__ = [
    "PARTS",
    "SHEETS",
    "ClaimRound",
    "CodingRound",
    "DrillSheet",
    "MockSheet",
    "QuestionCards",
    "Sheet",
    "Timer",
]
