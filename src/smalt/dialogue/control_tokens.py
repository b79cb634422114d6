"""Control tokens in untrusted text.

Feedback shows what a hostile program printed. If that text holds `<|im_end|>`, the tokenizer ends the
message there and the program writes the rest of the conversation. So every control token in untrusted text
is broken up before it reaches a template.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# The first that occurs in no control token is taken. A space comes first: it stays visible, and no
# tokenizer's normaliser removes it, as some do with zero-width characters.
_BREAKS = (" ", "\u200b", "·", "\u2060", "¦")


def neutralise(text: str, control_tokens: Sequence[str]) -> str:
    """Break up every occurrence of a control token, overlapping ones too.

    A break character that is part of no control token goes after an occurrence's first character; a token
    of a single character is replaced by it. The result holds no control token: an occurrence in it could
    not contain a break character, so it would be one of the original text, and those are all broken.

    Args:
        text: untrusted text.
        control_tokens: strings that the tokenizer reads as one control token, e.g. `<|im_end|>`, `</s>`.
    """
    tokens = {token for token in control_tokens if token}
    if not tokens:
        return text
    mark = _break_character(tokens)
    text = re.sub("|".join(re.escape(token) for token in tokens if len(token) == 1) or r"(?!)", mark, text)
    long_tokens = "|".join(re.escape(token) for token in tokens if len(token) > 1) or r"(?!)"
    # The look-ahead finds occurrences that begin inside one another.
    return re.sub(rf"(?=(?:{long_tokens}))(.)", rf"\g<1>{mark}", text, flags=re.DOTALL)


def _break_character(tokens: set[str]) -> str:
    used = set("".join(tokens))
    candidates = (*_BREAKS, *map(chr, range(0x2190, 0x2190 + len(used) + 1)))
    return next(character for character in candidates if character not in used)
