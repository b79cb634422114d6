"""HumanEval (Chen et al. 2021, arXiv 2107.03374) and the Python part of HumanEvalPack (arXiv 2308.07124).

Hidden is the data set's `check`. Public are the examples a reader of the prompt sees: `example_test` where
the file has it (HumanEvalPack), else what can be read from the docstring.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from smalt.problems.asserts import asserted_rule, call_test, called_names
from smalt.problems.docstring_examples import docstring_examples
from smalt.problems.problem import CallTest, CodeTest, Problem, TestCase
from smalt.problems.records import Record, read_records, unique_ids


def read_humaneval(path: str | Path) -> list[Problem]:
    """Read `HumanEval.jsonl[.gz]` or a file with the same fields, such as `humanevalpack_python.jsonl`.

    Raises:
        ProblemFileError: a field is missing or the prompt does not define its entry point.
    """
    return unique_ids((record, problem_from_record(record)) for record in read_records(path))


def problem_from_record(record: Record) -> Problem:
    """One problem from a line of the file."""
    prompt = record.text("prompt")
    entry_point = record.text("entry_point")
    function = _entry_function(record, prompt, entry_point)
    test = record.text("test")
    asserted = _example_tests(record.text("example_test", default=""), entry_point)
    return record.problem(
        id=record.text("task_id"),
        statement=f"Complete the Python function `{entry_point}` as its docstring says.",
        public_tests=asserted or _docstring_tests(function, test),
        hidden_tests=[CodeTest(code=_hidden_code(test, entry_point))],
        entry_point=entry_point,
        starter_code=prompt,
        preamble=_preamble(prompt, function),
        compare=asserted_rule(asserted),
        solutions=[prompt + record.text("canonical_solution")],
        metadata={"source": "humaneval"},
    )


def _entry_function(record: Record, prompt: str, entry_point: str) -> ast.FunctionDef:
    try:
        tree = ast.parse(prompt)
    except (SyntaxError, ValueError) as error:
        raise record.error("prompt", f"is not Python code ({error}); expected a signature and docstring") from None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            return node
    raise record.error("entry_point", f"the prompt defines no function {entry_point!r}; expected its signature")


def _preamble(prompt: str, function: ast.FunctionDef) -> str:
    """What the prompt defines before the function: imports and helper functions.

    Answers often leave these out, and the reference programs of the data set begin with them.
    """
    first = min([function.lineno, *(node.lineno for node in function.decorator_list)])
    code = "\n".join(prompt.split("\n")[: first - 1]).strip("\n")
    return code + "\n" if code.strip() else ""


def _hidden_code(test: str, entry_point: str) -> str:
    """The test with the call of its `check`, which HumanEvalPack's tests already end with."""
    call = f"check({entry_point})"
    return test if test.rstrip().endswith(call) else f"{test.rstrip()}\n\n{call}\n"


def _example_tests(source: str, entry_point: str) -> list[TestCase]:
    check = _check_function(source)
    if check is None:
        return []
    statements = [node for node in check.body if entry_point in called_names(node)]
    if any(not isinstance(node, ast.Assert) for node in statements):
        return [CodeTest(code=f"{ast.unparse(check)}\n\ncheck({entry_point})\n")]
    # Other statements (imports, `assert True, "message"`) test nothing.
    return [call_test(node, entry_point) or CodeTest(code=ast.unparse(node)) for node in statements]


def _check_function(source: str) -> ast.FunctionDef | None:
    # One file line carries a stray piece of a solution before its `check`: begin at the last one.
    start = source.rfind("\ndef check(") + 1
    try:
        tree = ast.parse(source[start:])
    except SyntaxError:
        return None
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check")
    return next(functions, None)


def _docstring_tests(function: ast.FunctionDef, test: str) -> list[CallTest]:
    """The docstring's examples, without those that are errors in the docstring.

    Known as errors are examples whose call the hidden test expects another value of (HumanEval/47: the median
    of six numbers is 15.0 in the docstring, 8.0 in the test), and values of a kind that the test never
    expects (HumanEval/130 returns a list, its docstring says `tri(2) = 2`).
    """
    parameters = [argument.arg for argument in function.args.args]
    docstring = ast.get_docstring(function, clean=False) or ""
    truths = _expected_values(test, function.name)
    kinds = {_kind(value) for value in truths.values()}
    return [
        example
        for example in docstring_examples(docstring, function.name, parameters)
        if truths.get(repr(example.args), example.expected) == example.expected
        and (not kinds or _kind(example.expected) in kinds)
    ]


def _expected_values(test: str, entry_point: str) -> dict[str, Any]:
    """What a test expects of each call with literal arguments; keys are repr() of the arguments."""
    try:
        statements = [node for node in ast.walk(ast.parse(test)) if isinstance(node, ast.stmt)]
    except SyntaxError:
        return {}
    calls = (call_test(node, name) for node in statements for name in ("candidate", entry_point))
    return {repr(call.args): call.expected for call in calls if call}


def _kind(value: object) -> str:
    if isinstance(value, bool | int | float):
        return "number"
    return "sequence" if isinstance(value, list | tuple) else type(value).__name__
