import time
from typing import NamedTuple

import pytest

from smalt.grading.extraction import extract_program

SOLVE = "def solve(x):\n    return x + 1\n"
OTHER = "def solve(x):\n    return x + 2\n"
SCRIPT = "n = int(input())\nprint(n + 1)\n"
HELPER = "def helper(x):\n    return x + 1\n"
USES_HELPER = "def solve(x):\n    return helper(x)\n"
METHOD = "class Solution:\n    def solve(self): pass\n"
DOCSTRING = 'def f():\n    """\n    ```\n    f()\n    ```\n    """\n    return 1\n'


class Case(NamedTuple):
    reason: str
    """Why the program is what it is; an issue where a grader in use gets it wrong."""
    reply: str
    program: str | None
    entry_point: str | None = None


def fenced(code: str, language: str = "python", fence: str = "```") -> str:
    return f"{fence}{language}\n{code}{fence}\n"


THINKING = f"<think>\n{fenced(OTHER)}</think>\n"
CASES: dict[str, Case] = {
    # One block.
    "one block": Case("the plain case", f"Here it is:\n\n{fenced(SOLVE)}\nIt adds one.", SOLVE),
    "one script, entry point": Case(
        "one block is the program, never the whole reply (ROLL#84)", fenced(SOLVE), SOLVE, "solve"
    ),
    "py": Case("a name of Python", fenced(SCRIPT, "py"), SCRIPT),
    "python3": Case("a name of Python", fenced(SCRIPT, "python3"), SCRIPT),
    "python3.11": Case("a name of Python", fenced(SCRIPT, "python3.11"), SCRIPT),
    "pypy3": Case("a name of Python", fenced(SCRIPT, "pypy3"), SCRIPT),
    "Python": Case("case does not matter", fenced(SCRIPT, "Python"), SCRIPT),
    "space before the language": Case("Markdown allows it", fenced(SCRIPT, " python"), SCRIPT),
    "words after the language": Case("renderers read options there", fenced(SCRIPT, "python title=a.py"), SCRIPT),
    "file name after the language": Case("editors' habit", fenced(SCRIPT, "python:a.py"), SCRIPT),
    "language in braces": Case("notebooks' habit", fenced(SCRIPT, "{.python}"), SCRIPT),
    "no language": Case("it reads as Python", fenced(SCRIPT, ""), SCRIPT),
    "language on the next line": Case("small models do", fenced("python\n" + SCRIPT, ""), SCRIPT),
    "Python3 on a later line": Case("small models do", fenced("\nPython3\n" + SCRIPT, ""), SCRIPT),
    "tildes": Case("the other fence of Markdown", fenced(SCRIPT, "python", "~~~"), SCRIPT),
    "four backticks": Case("longer fences hold shorter ones", fenced(SCRIPT, "python", "````"), SCRIPT),
    "CRLF": Case("line ends are no part of the program", fenced(SCRIPT).replace("\n", "\r\n"), SCRIPT),
    "indented": Case("a list item", "1. Code:\n\n   ```python\n   x = 1\n   print(x)\n   ```\n", "x = 1\nprint(x)\n"),
    "fence after a sentence": Case("small models do", f"The program: ```python\n{SCRIPT}```", SCRIPT),
    "closing fence glued to the code": Case("small models do", "```python\nprint(1)```\nDone.", "print(1)\n"),
    "fence opened twice": Case("seen in LiveCodeBench's o1-mini samples", f"```python\n{fenced(SCRIPT)}```\n", SCRIPT),
    "reply quoted as Markdown": Case("the inner block is meant", f"```markdown\nSee:\n{fenced(SCRIPT)}```\n", SCRIPT),
    "form feed in a line": Case("only newlines end lines", fenced("x = 'a\x0cb'\n"), "x = 'a\x0cb'\n"),
    "broken program": Case("it is compile_error's to say so", fenced("def solve(x:\n"), "def solve(x:\n", "solve"),
    "broken, no language": Case(
        "it reads as Python", fenced("def solve(x:\n  return\n", ""), "def solve(x:\n  return\n"
    ),
    # Cut off.
    "unclosed": Case("the reply was cut after the program", "```python\n" + SCRIPT, SCRIPT),
    "unclosed inside a line": Case("cut inside: still all there is", "```python\n" + SOLVE + "p(so", SOLVE + "p(so\n"),
    "closing fence only": Case("the prompt opened the fence", SCRIPT + "```\nThis adds one.", SCRIPT),
    "correction cut off": Case("whole beats cut", f"{fenced(SOLVE)}Better:\n```python\ndef solve(x:", SOLVE, "solve"),
    "cut in the opening fence": Case("the block before it is whole", fenced(SOLVE) + "Usage:\n```py", SOLVE),
    # Several blocks: which one.
    "demo, entry point": Case(
        "the last block is a demo (NeMo Gym#820)", fenced(SOLVE) + fenced("print(solve(1))\n"), SOLVE, "solve"
    ),
    "demo, no entry point": Case(
        "it calls what another defines (NeMo Gym#820)", fenced(SOLVE) + fenced("solve(1)\n"), SOLVE
    ),
    "demo before": Case("a demo is one wherever it stands", fenced("print(solve(1))\n") + fenced(SOLVE), SOLVE),
    "own tests": Case(
        "tests in the reply are no program (GRPO-With-Cargo-Feedback#2)",
        fenced(SOLVE) + fenced("def test_it():\n    assert solve(1) == 2\n"),
        SOLVE,
    ),
    "correction, entry point": Case("the last word counts", fenced(SOLVE) + "Wait.\n" + fenced(OTHER), OTHER, "solve"),
    "correction, no entry point": Case("the last word counts", fenced(SOLVE) + "Wait.\n" + fenced(OTHER), OTHER),
    "correction, then a demo": Case(
        "both rules at once", fenced(SOLVE) + fenced(OTHER) + fenced("assert solve(1) == 3\n"), OTHER
    ),
    "entry point in an earlier block": Case(
        "the defining block counts, not the last (rllm#128)", fenced(SOLVE) + fenced(SCRIPT), SOLVE, "solve"
    ),
    "helper last": Case("the defining block counts", fenced(SOLVE) + fenced(HELPER), SOLVE, "solve"),
    "unused helper first": Case("only what is needed is joined", fenced(HELPER) + fenced(SOLVE), SOLVE, "solve"),
    "a call is no definition": Case(
        "nor is another name", fenced(SOLVE) + fenced("solve(1)\nresolve = 1\n"), SOLVE, "solve"
    ),
    "method": Case("a class may hold the function", fenced(METHOD), METHOD, "solve"),
    "class Solution": Case(
        "its call path names the class", fenced(METHOD) + fenced(SCRIPT), METHOD, "Solution().solve"
    ),
    "entry point nowhere": Case("a wrong name is the grader's to see", fenced(SCRIPT), SCRIPT, "solve"),
    "assigned entry point": Case(
        "a lambda is a definition", fenced("solve = abs\n") + fenced(SCRIPT), "solve = abs\n", "solve"
    ),
    "broken after whole": Case("whole beats broken", fenced(SOLVE) + fenced("def g(:\n"), SOLVE),
    "marked beats unmarked": Case("an unmarked block is often output", fenced(SCRIPT) + fenced("x = 3\n", ""), SCRIPT),
    # A program in parts.
    "imports first": Case(
        "the parts make one program",
        fenced("import math\n") + fenced("print(math.pi)\n"),
        "import math\nprint(math.pi)\n",
    ),
    "helper in its own block": Case(
        "solve alone would crash", fenced(HELPER) + fenced(USES_HELPER), HELPER + USES_HELPER, "solve"
    ),
    "parts of parts": Case(
        "needs are followed",
        fenced("import math\n") + fenced("def helper(x):\n    return math.sqrt(x)\n") + fenced(USES_HELPER),
        "import math\ndef helper(x):\n    return math.sqrt(x)\n" + USES_HELPER,
        "solve",
    ),
    "main part in its own block": Case(
        "only the second block reads the input",
        fenced(SOLVE) + fenced("print(solve(int(input())))\n"),
        SOLVE + "print(solve(int(input())))\n",
    ),
    "second main part": Case(
        "the first reads the input already",
        fenced(SOLVE + "print(solve(int(input())))\n") + fenced("solve(int(input()))\n"),
        SOLVE + "print(solve(int(input())))\n",
    ),
    # Blocks that are no program.
    "fenced summary": Case(
        "prose in a fence (LiveCodeBench!118)", fenced(SCRIPT) + fenced("It reads n and prints n + 1.\n", ""), SCRIPT
    ),
    "fenced summary marked text": Case(
        "another language (LiveCodeBench!118)", fenced(SCRIPT) + fenced("x = 1\n", "text"), SCRIPT
    ),
    "fenced sample output": Case("a number is no program", fenced(SCRIPT) + "Output:\n" + fenced("42\n", ""), SCRIPT),
    "sample output marked Python": Case(
        "a number is no program", fenced(SCRIPT) + "Output:\n" + fenced("42\n"), SCRIPT
    ),
    "fenced sample word": Case("a bare name is no program", fenced(SCRIPT) + "Output:\n" + fenced("YES\n", ""), SCRIPT),
    "shell command": Case("another language", fenced(SCRIPT) + fenced("python a.py\n", "bash"), SCRIPT),
    "session": Case("a transcript does not parse", fenced(SOLVE) + fenced(">>> solve(1)\n2\n"), SOLVE),
    "sample input first": Case("numbers are no program", fenced("3\n1 2 3\n", "") + fenced(SCRIPT, ""), SCRIPT),
    "other language only": Case("no Python, no program", fenced("int main() { return 0; }\n", "cpp"), None),
    "empty block": Case("nothing is no program", fenced(""), None),
    "empty block, then code": Case("nothing is no program", fenced("") + fenced(SCRIPT), SCRIPT),
    # Thinking.
    "thinking": Case("drafts do not count", THINKING + fenced(SOLVE), SOLVE),
    "thinking opened in the prompt": Case("templates do", f"{fenced(OTHER)}</think>\n{fenced(SOLVE)}", SOLVE),
    "thinking without end": Case("the answer never came", f"<think>\n{fenced(SOLVE)}", None),
    "thinking twice": Case("the last thought never ended", f"<think>a</think>{fenced(SOLVE)}<think>b", None),
    "thinking only": Case("drafts do not count", THINKING + "Done.", None),
    # Without fences.
    "no fence": Case("the reply is the program", SCRIPT, SCRIPT),
    "no fence, blank lines": Case("the reply is the program", "\n\n" + SOLVE + "\n", SOLVE),
    "no fence, prose around": Case(
        "the run of lines that parses", f"Here is it:\n\n{SOLVE}\n{SCRIPT}\nIt adds one.\n", SOLVE + "\n" + SCRIPT
    ),
    "no fence, prose before": Case("prose glued to the code", f"Sure, the program:\n{SCRIPT}", SCRIPT),
    "no fence, tags around": Case(
        "MINT's layout", f"It adds.\n<solution>\nimport math\n\n{SOLVE}</solution>", f"import math\n\n{SOLVE}"
    ),
    "PYTHON tags": Case("Code Llama marks code so", f"[PYTHON]\n{SOLVE}[/PYTHON]\nDone.", SOLVE),
    "PYTHON tag left open": Case("cut off", f"Sure. [PYTHON]\n{SOLVE}", SOLVE),
    "prose": Case("no code", "I do not know how to solve this.", None),
    "prose with a keyword": Case("no code", "import duties are from what I know high.\n\nprint it.", None),
    "one word": Case("parses, but does nothing", "Sorry", None),
    "a number": Case("parses, but does nothing", "42", None),
    "nothing": Case("no code", "", None),
    "inline code": Case("a mention is no program", "Use `print(1)` here.", None),
    # Fences inside the program.
    "backticks in a string": Case(
        "no fence, as text stands before", fenced("print('```')\nprint(`1`)\n"), "print('```')\nprint(`1`)\n"
    ),
    "fence in a docstring": Case("the block that parses ends later", fenced(DOCSTRING), DOCSTRING),
}


@pytest.mark.parametrize("name", CASES)
def test_program(name: str) -> None:
    case = CASES[name]
    assert extract_program(case.reply, case.entry_point).program == case.program, case.reason


def test_layout_of_one_block() -> None:
    extraction = extract_program(f"Text.\n{fenced(SOLVE)}\n  The end.\n")
    assert (extraction.blocks, extraction.is_exactly_one_block) == (1, True)
    assert extraction.trailing_text == "The end."
    assert not extraction.has_backtick_inside


def test_layout_of_several_blocks() -> None:
    extraction = extract_program(fenced(SOLVE) + fenced("solve(1)\n") + fenced("text\n", "text"))
    assert (extraction.blocks, extraction.is_exactly_one_block) == (2, False)
    assert extraction.trailing_text.startswith("```python")


@pytest.mark.parametrize(
    "reply", ["```python\n" + SOLVE, SOLVE, fenced(SOLVE) + fenced("1\n", "text"), f"[PYTHON]\n{SOLVE}[/PYTHON]"]
)
def test_not_exactly_one_block(reply: str) -> None:
    extraction = extract_program(reply)
    assert extraction.program == SOLVE
    assert not extraction.is_exactly_one_block


def test_backtick_inside() -> None:
    assert extract_program(fenced("print('`')\n")).has_backtick_inside


def test_trailing_text_of_code_in_prose() -> None:
    assert extract_program(f"So:\n\n{SOLVE}\nIt adds one.\n").trailing_text == "It adds one."


HOSTILE = {
    "a long line": "a b " * 20_000 + "```pythonx",
    "backticks": "`" * 100_000,
    "runs of backticks": ("`" * 5 + " ") * 20_000,
    "many blocks": fenced(SOLVE) * 1000,
    "many demos": fenced(SOLVE) + fenced("solve(1)\n") * 1000,
    "glued fences": "```python\nprint(1)```\n" * 1000,
    "fences": "```\n" * 10_000,
    "opening fences": "```python\n" * 10_000,
    "fences in a string": "```python\n'''\n" + "```\n" * 10_000,
    "tags": "[PYTHON]" * 10_000,
    "thoughts": "<think>" * 10_000,
    "deep expression": fenced("-" * 50_000 + "1\n"),
    "prose after lines of code": "x = 1\n" * 1500 + "which is all.\n" * 60,
    "lines that may be code": "x = (\n\n" * 2000,
    "carriage returns": "\r" * 50_000,
    "a formatted string": fenced("x = f'" + "{x!r:{y}}" * 50_000 + "'\n"),
    "continued lines": fenced("x = \\\n" * 200_000 + "1\n"),
    "NUL": fenced("print('\0')\n"),
    "surrogate": fenced("print('\ud800')\n"),
}


def test_a_program_too_long_to_be_parsed_is_taken_by_its_fence() -> None:
    program = SOLVE + "# " + "x" * 100_000 + "\n"
    assert extract_program(f"Try:\n{fenced(program)}", "solve").program == program


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_replies_end_soon(name: str) -> None:
    started = time.process_time()
    extract_program(HOSTILE[name])
    extract_program(HOSTILE[name], "solve")
    assert time.process_time() - started < 2
