"""Exact tokens of a dialogue: prompts grow by appending ids, never by re-encoding what was decoded.

The chat template of the model is asked once per kind of step, and only for the text *around* replies. A sampled
reply stays as the ids that were sampled. Only where the history rule changes a reply's text (thinking removed, an
overlong reply cut) is the dialogue rendered anew; such a prompt says so by `extends_previous = False`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smalt.dialogue.control_tokens import neutralise
from smalt.dialogue.history import history_text
from smalt.grading.thinking import OPENING

Message = dict[str, str]

# Stands for a reply while the template is asked what surrounds one; plain text that no template alters.
_REPLY_MARK = "smaltreplymark"


class ChatFormatError(ValueError):
    """The model's chat template cannot serve a dialogue."""


@dataclass(frozen=True)
class Prompt:
    """A prompt as the model reads it, and the messages behind it."""

    ids: tuple[int, ...]
    messages: tuple[Message, ...]
    tail: tuple[int, ...]
    """Ids after the previous prompt and its reply; all ids of an opening or a new segment."""
    extends_previous: bool = False
    """Whether the previous prompt's ids + the sampled reply's ids are a prefix of `ids`."""


@dataclass(frozen=True)
class ChatFormat:
    """A tokenizer's chat template, used token-exactly.

    `reply_prefix` opens every reply for the model (for example a code fence); it belongs to the prompt.
    `template_options` go to the chat template, for example `enable_thinking`.
    """

    tokenizer: Any
    system: str = ""
    reply_prefix: str = ""
    history_limit: int = 6000
    template_options: dict[str, Any] = field(default_factory=dict)
    model_stop_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Refuse a tokenizer without a usable chat template."""
        if not getattr(self.tokenizer, "chat_template", None):
            raise ChatFormatError(
                "the model's tokenizer has no chat template: add chat_template.jinja to the model folder "
                "(instruct and chat models ship one)"
            )

    def opening(self, task: str) -> Prompt:
        """The prompt of a first turn."""
        messages: list[Message] = [{"role": "system", "content": self.system}] if self.system else []
        messages.append({"role": "user", "content": self._clean(task)})
        return self._rendered(messages)

    def next_turn(self, previous: Prompt, reply_ids: Sequence[int], feedback: str) -> Prompt:
        """The prompt after a reply and the feedback on it."""
        reply = self.reply_text(reply_ids)
        kept = history_text(reply, self.history_limit)
        user: Message = {"role": "user", "content": self._clean(feedback)}
        messages = [*previous.messages, {"role": "assistant", "content": kept}, user]
        if kept != reply:
            return self._rendered(messages)
        tail = self._after_reply(user["content"])
        if reply_ids and tail and reply_ids[-1] == tail[0] and tail[0] in self.stop_ids:
            tail = tail[1:]
        return Prompt((*previous.ids, *reply_ids, *tail), tuple(messages), tuple(tail), extends_previous=True)

    def reply_text(self, reply_ids: Sequence[int]) -> str:
        """A reply as text: the prefix we opened it with and what was sampled, without stop tokens."""
        ids = list(reply_ids)
        while ids and ids[-1] in self.stop_ids:
            ids.pop()
        return self.reply_opening + str(self.tokenizer.decode(ids, skip_special_tokens=False))

    @functools.cached_property
    def reply_opening(self) -> str:
        """What already stands at the start of each reply: a thought opened by the template, our prefix."""
        rendered = self._render([{"role": "user", "content": "?"}], add_generation_prompt=True)
        thought = f"{OPENING}\n" if rendered.rstrip().endswith(OPENING) else ""
        return thought + self.reply_prefix

    @property
    def stop_ids(self) -> frozenset[int]:
        """Ids that end a reply: the tokenizer's end token and those of the model's generation config."""
        return self.model_stop_ids | {self.tokenizer.eos_token_id}

    @functools.cached_property
    def control_tokens(self) -> tuple[str, ...]:
        """Every string that the tokenizer would read as a control token."""
        added = (token.content for token in self.tokenizer.added_tokens_decoder.values())
        found = {token for token in (*self.tokenizer.all_special_tokens, *added) if token.strip()}
        return tuple(sorted(found, key=len, reverse=True))

    def _clean(self, text: str) -> str:
        """Statements and feedback come from outside: what would act as a control token is broken up."""
        # Tokenizers refuse lone surrogates, which a program may put into an error's text.
        return neutralise(text.encode("utf-8", "replace").decode("utf-8"), self.control_tokens)

    def _rendered(self, messages: list[Message]) -> Prompt:
        ids = self._encode(self._render(messages, add_generation_prompt=True) + self.reply_prefix)
        return Prompt(tuple(ids), tuple(messages), tuple(ids))

    def _after_reply(self, user_text: str) -> list[int]:
        """Ids from the end of a reply's text to the start of the next one."""
        messages = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": _REPLY_MARK},
            {"role": "user", "content": user_text},
        ]
        _, mark, tail = self._render(messages, add_generation_prompt=True).partition(_REPLY_MARK)
        if not mark:
            raise ChatFormatError("the chat template drops or alters earlier replies: set a history-keeping one")
        return self._encode(tail + self.reply_prefix)

    def _render(self, messages: Sequence[Message], add_generation_prompt: bool) -> str:
        rendered = self.tokenizer.apply_chat_template(
            list(messages),
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            **self.template_options,
        )
        return str(rendered)

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))
