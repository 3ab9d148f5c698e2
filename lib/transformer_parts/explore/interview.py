"""The sheets of the interview page: the notebook and the tests go through this list."""

from transformer_parts.explore.interview_cards import QuestionCards
from transformer_parts.explore.interview_claims import ClaimRound
from transformer_parts.explore.interview_drills import DrillSheet
from transformer_parts.explore.interview_mock import MockSheet
from transformer_parts.explore.interview_sheet import Sheet

__all__ = ["SHEETS", "ClaimRound", "DrillSheet", "MockSheet", "QuestionCards"]

SHEETS: tuple[type[Sheet], ...] = (QuestionCards, DrillSheet, ClaimRound, MockSheet)
