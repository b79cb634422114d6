import pytest
import torch

from smalt.dialogue.chat import ChatFormat
from smalt.training.settings import WarmStartSettings
from smalt.training.sft import Example, examples_of, fine_tune
from tests.conftest import drop_first
from tests.scripted import RIGHT, WORDING

TWO_SOLUTIONS = drop_first(solutions=("def f(x):\n    return x[1:]\n", "\n\ndef f(x):\n    return list(x)[1:]\n\n"))
SETTINGS = WarmStartSettings(epochs=10, batch=4, learning_rate=1e-2, warm_up_share=0)


def losses(policy, examples, settings=SETTINGS):
    told = []
    fine_tune(policy, examples, settings, lambda step, steps, loss: told.append((step, steps, loss)))
    assert [step for step, _, _ in told] == list(range(told[0][1]))
    return [loss for _, _, loss in told]


def reply_loss(policy, examples):
    """Mean of the negative log-likelihood over reply tokens, one example at a time."""
    total, count = 0.0, 0
    for example in examples:
        row = torch.tensor([[*example.prompt_ids, *example.reply_ids]])
        with torch.no_grad():
            scores = policy.model(input_ids=row).logits[0].log_softmax(-1)
        start = len(example.prompt_ids)
        total -= sum(scores[start + i - 1, token].item() for i, token in enumerate(example.reply_ids))
        count += len(example.reply_ids)
    return total / count


@pytest.fixture
def examples(chat):
    return examples_of([TWO_SOLUTIONS, drop_first("other", statement="Write f(x).")], chat, WORDING, False, 1000)


def weights(policy):
    return {name: p.detach().clone() for name, p in policy.model.named_parameters()}


def test_an_example_is_the_dialogue_as_the_policy_would_have_it(chat, tokenizer):
    first, second = examples_of([TWO_SOLUTIONS], chat, WORDING, False, 1000)
    assert first.prompt_ids == chat.opening("Write f(x): drop one end.").ids
    assert first.reply_ids == (*tokenizer.encode(RIGHT, add_special_tokens=False), tokenizer.eos_token_id)
    assert chat.reply_text(second.reply_ids) == "```python\ndef f(x):\n    return list(x)[1:]\n```"
    assert len(first) == len(first.prompt_ids) + len(first.reply_ids)


def test_a_reply_prefix_is_not_learnt_twice(tokenizer):
    chat = ChatFormat(tokenizer, reply_prefix="```python\n")
    example = examples_of([drop_first()], chat, WORDING, False, 1000)[0]
    assert tokenizer.decode([*example.prompt_ids, *example.reply_ids]).count("```python") == 1
    assert chat.reply_text(example.reply_ids) == RIGHT


def test_overlong_examples_and_problems_without_solutions_are_left_out(chat):
    problems = [drop_first(), drop_first("bare", solutions=()), drop_first("long", statement="drop one end " * 50)]
    found = examples_of(problems, chat, WORDING, False, 60)
    assert len(found) == 1
    assert len(found[0]) <= 60
    assert examples_of(problems[:1], chat, WORDING, False, len(found[0]))
    assert not examples_of(problems[:1], chat, WORDING, False, len(found[0]) - 1)


def test_without_solutions_there_is_nothing_to_learn(policy):
    with pytest.raises(ValueError, match="reference solution"):
        fine_tune(policy, [], SETTINGS, lambda step, steps, loss: None)


def test_the_loss_is_that_of_the_reply_tokens_and_falls(policy, examples):
    before = reply_loss(policy, examples)
    told = losses(policy, examples, SETTINGS.model_copy(update={"batch": len(examples)}))
    assert len(told) == 10
    assert told[0] == pytest.approx(before, rel=1e-4)
    assert told[-1] < 0.6 * told[0]
    assert reply_loss(policy, examples) < told[-1]
    assert not policy.model.training


def test_prompt_tokens_carry_no_loss(policy, model_folder):
    """Were the prompt learnt as well, the reported loss would cover six tokens more."""
    example = Example((5, 9, 301, 77, 8, 12), (17, 300))
    assert losses(policy, [example], SETTINGS.model_copy(update={"epochs": 0.1}))[0] == pytest.approx(
        reply_loss_before(model_folder, example), rel=1e-4
    )


def reply_loss_before(model_folder, example):
    from smalt.policy.loading import ModelSettings, load_policy

    return reply_loss(load_policy(ModelSettings(path=str(model_folder), device="cpu")), [example])


@pytest.mark.parametrize("micro_batch_tokens", [1, 100])
def test_micro_batches_change_nothing_but_memory(policy, examples, model_folder, micro_batch_tokens):
    from smalt.policy.loading import ModelSettings, load_policy

    other = load_policy(ModelSettings(path=str(model_folder), device="cpu"))
    gentle = SETTINGS.model_copy(update={"epochs": 2, "learning_rate": 1e-4})
    whole = losses(policy, examples, gentle)
    assert losses(other, examples, gentle.model_copy(update={"micro_batch_tokens": micro_batch_tokens})) == (
        pytest.approx(whole, rel=1e-4)
    )
    found, expected = weights(other), weights(policy)
    assert max((found[name] - expected[name]).abs().max().item() for name in found) < 1e-6


def test_the_same_seed_gives_the_same_weights(examples, model_folder):
    from smalt.policy.loading import ModelSettings, load_policy

    def trained(seed):
        policy = load_policy(ModelSettings(path=str(model_folder), device="cpu"))
        losses(policy, examples, SETTINGS.model_copy(update={"epochs": 3, "batch": 2, "seed": seed}))
        return weights(policy)

    first, again, other = trained(0), trained(0), trained(1)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_steps_cover_the_epochs(policy, examples):
    assert len(losses(policy, examples, SETTINGS.model_copy(update={"epochs": 1.5, "batch": 2}))) == 3
    assert len(losses(policy, examples, SETTINGS.model_copy(update={"epochs": 0.1, "batch": 64}))) == 1
