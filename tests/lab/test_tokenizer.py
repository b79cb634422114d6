import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.lab.corpus import HABIT, dialogues
from smalt.lab.generator import generate
from smalt.lab.ideas import IDEAS, STEPS, program_of
from smalt.lab.tokenizer import END, VOCABULARY, train_tokenizer

lines = st.sampled_from([(w, e) for idea in IDEAS for w in idea.wordings for e in (*idea.meanings, *idea.slips)])
programs = st.lists(lines, min_size=1, max_size=len(STEPS)).map(lambda steps: program_of(*zip(*steps, strict=True)))
lists = st.lists(st.integers(-99, 99), max_size=12)


def round_trip(tokenizer, text):
    return tokenizer.decode(tokenizer.encode(text, add_special_tokens=False))


def pieces(tokenizer, text):
    return [tokenizer.decode([token]) for token in tokenizer.encode(text, add_special_tokens=False)]


@pytest.fixture(scope="module")
def larger():
    """Trained on enough dialogues to have met every digit and every idea often."""
    texts = itertools.islice(dialogues(generate("train", 1000, 0), HABIT, seed=0), 2000)
    return train_tokenizer(itertools.chain.from_iterable(texts))


@given(program=programs)
def test_programs_come_back(program, tokenizer):
    assert round_trip(tokenizer, f"```python\n{program}```") == f"```python\n{program}```"


@given(values=lists)
def test_lists_come_back(values, tokenizer):
    for text in (repr(values), f"Call: f({values})\nYour function returned: {values}\nExpected: {values}"):
        assert round_trip(tokenizer, text) == text


@given(text=st.text(max_size=40).filter(lambda text: "<|" not in text))
def test_any_text_comes_back(text, tokenizer):
    assert round_trip(tokenizer, text) == text


@given(values=st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_each_digit_of_a_list_is_one_token_with_its_comma(values, larger):
    first, *rest = values
    assert pieces(larger, repr(values)) == [f"[{first}", *(f", {value}" for value in rest), "]"]


def test_numbers_in_a_list_do_not_depend_on_their_neighbours(larger):
    tokens = larger.encode("[3, 3, 3, 3]", add_special_tokens=False)
    assert len(set(tokens[1:4])) == 1


@given(program=programs)
def test_a_line_of_a_program_is_a_handful_of_tokens(program, larger):
    for line in program.splitlines():
        assert len(larger.encode(line, add_special_tokens=False)) <= 16
    assert larger.encode("    x = x[::-1]\n", add_special_tokens=False)[-1] == larger.encode("\n")[0]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_the_same_tokens_in_statement_and_program(step, larger):
    said, written = pieces(larger, f"{step}) sort them\n"), pieces(larger, f"    # {step}) sort them\n")
    assert said[0] == step
    assert written == ["    # ", *said]


def test_control_tokens_are_tokens_of_their_own(tokenizer):
    assert len(tokenizer) == VOCABULARY
    assert tokenizer.eos_token == END
    assert len(tokenizer.encode("<|user|><|assistant|><|end|>", add_special_tokens=False)) == 3


def test_the_template_marks_roles_and_ends(tokenizer):
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert tokenizer.apply_chat_template(messages, tokenize=False) == "<|user|>a<|end|><|assistant|>b<|end|>"
    opened = tokenizer.apply_chat_template(messages[:1], tokenize=False, add_generation_prompt=True)
    assert opened == "<|user|>a<|end|><|assistant|>"


def test_a_saved_tokenizer_reads_the_same(tokenizer, tmp_path):
    from smalt.policy.loading import load_tokenizer

    tokenizer.save_pretrained(tmp_path)
    loaded = load_tokenizer(str(tmp_path))
    text = "<|user|>Write f(x).\nA) sort them\n[1, 2, -3]  x <|end|>"
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.decode(loaded.encode(text)) == text
