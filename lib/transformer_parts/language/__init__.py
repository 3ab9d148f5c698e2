"""The seam for words: every word that a reader sees is a `Message`, and a `Language` turns messages into text.

Code writes its words in English, as templates: ``_("turned by {angle:.2f} rad", angle=angle)``.  The message is a
string that reads as the filled English text, so it can be compared, escaped and used as a key like any other.  What
puts it on the page asks a language for its text: ``language.text(words)``.  Babel finds the templates by the names `_`
and `plural`, and the catalogues in ``locale/`` hold their translations; a second language touches no code.

Never add messages, and never put one into an f-string: that gives a plain string, which no language translates.  Write
one template with the parts as values, or use `join`.
"""

from transformer_parts.language.languages import PSEUDO, Language, available, language
from transformer_parts.language.messages import Message, join, message, plural

_ = message

__all__ = ["PSEUDO", "Language", "Message", "_", "available", "join", "language", "message", "plural"]
