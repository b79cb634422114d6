"""The lab's tokenizer: a small byte-level BPE with a chat template, trained on lab dialogues.

Merges may cross spaces but not lines or digits: a line of a lab program is a handful of tokens, and every digit
of a list is a token of its own together with its comma, so that a tiny model can compare lists position by position.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

VOCABULARY = 768
END = "<|end|>"
_CONTROL_TOKENS = [END, "<|user|>", "<|assistant|>"]
_PIECES = r"[ABC](?=\))|, -?\d|\[-?\d|-?\d|\n|(?:(?![ABC]\))[^\d\n\[,\-]|,(?! -?\d))+|[^\d\n]"
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def train_tokenizer(texts: Iterable[str]) -> Any:
    """A transformers tokenizer trained on message texts."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=_CONTROL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END, clean_up_tokenization_spaces=False)
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
