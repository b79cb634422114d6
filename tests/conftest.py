"""Shared pieces: a tiny random model with the lab's tokenizer, one that has learnt to answer, a problem."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from smalt.dialogue.chat import ChatFormat
from smalt.problems.problem import CallTest, Problem

# Small matrices on two cores: more threads than one only wait for each other, and xdist runs two processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def lab_tokenizer():
    from smalt.lab.corpus import HABIT, dialogues
    from smalt.lab.generator import generate
    from smalt.lab.tokenizer import train_tokenizer

    texts = itertools.islice(dialogues(generate("train", 60, 0), HABIT, seed=0), 120)
    return train_tokenizer(itertools.chain.from_iterable(texts))


def drop_first(name: str = "drop-first", **changes) -> Problem:
    """Return the list without its first element."""
    fields = {
        "id": name,
        "statement": "Write f(x): drop one end.",
        "entry_point": "f",
        "public_tests": (CallTest(args=([1, 2, 3],), expected=[2, 3]),),
        "hidden_tests": (CallTest(args=([4, 5],), expected=[5]), CallTest(args=([],), expected=[])),
        "solutions": ("def f(x):\n    return x[1:]\n",),
    }
    return Problem(**{**fields, **changes})


@pytest.fixture(scope="session")
def tokenizer():
    return lab_tokenizer()


@pytest.fixture(scope="session")
def chat(tokenizer):
    return ChatFormat(tokenizer)


@pytest.fixture(scope="session")
def model_folder(tokenizer, tmp_path_factory) -> Path:
    """A transformers folder with a tiny random Llama in float32."""
    import torch

    from smalt.lab.pretrain import PretrainSettings, new_model

    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    new_model(PretrainSettings(hidden=32, layers=2, heads=2), tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def schooled_folder(model_folder, chat, tmp_path_factory) -> Path:
    """The tiny model after lessons: to `problem` it answers with either reading, right or wrong."""
    from smalt.policy.loading import ModelSettings, load_policy
    from smalt.training.checkpoints import save_model
    from smalt.training.settings import WarmStartSettings
    from smalt.training.sft import examples_of, fine_tune
    from tests.scripted import WORDING

    schooled = load_policy(ModelSettings(path=str(model_folder), device="cpu"))
    both = drop_first(solutions=("def f(x):\n    return x[1:]\n", "def f(x):\n    return x[:-1]\n"))
    lessons = WarmStartSettings(epochs=120, batch=4, learning_rate=1e-2, warm_up_share=0)
    fine_tune(schooled, examples_of([both], chat, WORDING, False, 1000), lessons, lambda step, steps, loss: None)
    folder = tmp_path_factory.mktemp("schooled")
    save_model(folder, schooled)
    return folder


@pytest.fixture
def policy(model_folder):
    from smalt.policy.loading import ModelSettings, load_policy

    return load_policy(ModelSettings(path=str(model_folder), device="cpu"))


@pytest.fixture
def problem() -> Problem:
    """Return the list without its first element."""
    return drop_first()
