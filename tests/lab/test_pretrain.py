import dataclasses
import itertools

import pytest
import torch

from smalt.dialogue.chat import ChatFormat
from smalt.lab.corpus import HABIT, LAB_WORDING, SCHOOL, dialogues
from smalt.lab.generator import generate
from smalt.lab.model import save_lab_model, shipped_model_folder
from smalt.lab.pretrain import CONTEXT_LENGTH, PretrainSettings, pretrain, schoolbook
from smalt.lab.tokenizer import END
from smalt.policy.loading import ModelSettings, load_policy
from tests.conftest import drop_first
from tests.scripted import RIGHT, WRONG

TINY = PretrainSettings(problems=30, steps=3, batch=2, hidden=16, layers=1, heads=2)


@pytest.fixture(scope="module")
def trained():
    told = []
    model, tokenizer = pretrain(TINY, lambda step, loss: told.append((step, loss)))
    return model, tokenizer, told


def same(left, right):
    found, expected = left.state_dict(), right.state_dict()
    return all(torch.equal(found[name], expected[name]) for name in expected)


def test_the_same_seed_gives_the_same_weights_and_tokens(trained):
    model, tokenizer, told = trained
    again, other_tokenizer = pretrain(TINY)
    assert same(model, again)
    assert tokenizer.get_vocab() == other_tokenizer.get_vocab()
    assert [step for step, _ in told] == [0, 1, 2]
    assert all(6 < loss < 7 for _, loss in told)


def test_the_model_is_ready_for_dialogues(trained):
    model, tokenizer, _ = trained
    assert not model.training
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.max_position_embeddings == CONTEXT_LENGTH
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id


def test_a_saved_lab_model_loads_as_a_policy(trained, tmp_path):
    import copy

    model, tokenizer, _ = trained
    save_lab_model(tmp_path / "lab", copy.deepcopy(model), tokenizer)
    policy = load_policy(ModelSettings(path=str(tmp_path / "lab"), device="cpu"))
    assert policy.model.dtype is torch.float32
    found, expected = policy.model.state_dict(), model.state_dict()
    assert all(torch.equal(found[name], expected[name].bfloat16().float()) for name in expected)
    assert policy.stop_ids == {tokenizer.eos_token_id}


def test_dialogues_are_learnt_token_by_token_as_the_policy_meets_them(tokenizer):
    chat = ChatFormat(tokenizer)
    book = schoolbook(chat, ["Task", WRONG, "Expected: [2]", RIGHT])
    end = tokenizer.eos_token_id
    prompt = chat.next_turn(chat.opening("Task"), (*tokenizer.encode(WRONG), end), "Expected: [2]")
    assert book.ids == (*prompt.ids, *tokenizer.encode(RIGHT), end)


IGNORED = torch.nn.CrossEntropyLoss().ignore_index


@pytest.mark.parametrize("period", [SCHOOL, HABIT], ids=["school", "habit"])
def test_the_replies_are_learnt_and_nothing_of_the_user(chat, period):
    for messages in itertools.islice(dialogues(generate("train", 20, 0), period, seed=0), 60):
        book = schoolbook(chat, messages)
        assert len(book.labels) == len(book.ids)
        places = list(zip(book.ids, book.labels, strict=True))
        assert all(label in (token, IGNORED) for token, label in places)
        learnt = chat.tokenizer.decode([label for _, label in places if label != IGNORED])
        assert learnt == "".join(f"{reply}{END}" for reply in messages[1::2])
        read = chat.tokenizer.decode([token for token, label in places if label == IGNORED])
        assert read == "".join(f"<|user|>{said}{END}<|assistant|>" for said in messages[::2])


def test_a_template_that_rewrites_what_was_said_makes_no_lessons(chat, monkeypatch):
    def rendered_anew(self, previous, reply_ids, message):
        return dataclasses.replace(extended(self, previous, reply_ids, message), extends_previous=False)

    extended = ChatFormat.next_turn
    monkeypatch.setattr(ChatFormat, "next_turn", rendered_anew)
    with pytest.raises(ValueError, match="does not append"):
        schoolbook(chat, ["Task", WRONG, "Expected: [2]", RIGHT])


@pytest.mark.parametrize("messages", [["Task"], ["Task", WRONG, "Feedback"]])
def test_a_dialogue_ends_with_a_reply(tokenizer, messages):
    with pytest.raises(ValueError):
        schoolbook(ChatFormat(tokenizer), messages)


def test_lessons_and_growth_use_the_same_prompt(tokenizer):
    chat = ChatFormat(tokenizer)
    from smalt.dialogue.wording import task_message

    problem = drop_first()
    opening = chat.opening(task_message(problem, LAB_WORDING))
    assert schoolbook(chat, [problem.statement, RIGHT]).ids[: len(opening.ids)] == opening.ids


def test_a_package_without_the_model_says_how_to_make_it(monkeypatch, tmp_path):
    import smalt.lab.model

    monkeypatch.setattr(smalt.lab.model, "_SHIPPED", tmp_path / "base_model")
    with pytest.raises(FileNotFoundError, match="smalt lab pretrain --out"):
        shipped_model_folder()
