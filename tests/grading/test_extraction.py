import pytest

from smalt.grading.extraction import extract_program

SOLVE = "def solve(x):\n    return x + 1\n"
OTHER = "def solve(x):\n    return x + 2\n"
SCRIPT = "n = int(input())\nprint(n + 1)\n"


def fenced(code: str, language: str = "python", fence: str = "```") -> str:
    return f"{fence}{language}\n{code}{fence}\n"


CASES: dict[str, tuple[str, str | None, str | None]] = {
    "one block": (f"Here it is:\n\n{fenced(SOLVE)}\nIt adds one.", None, SOLVE),
    "py": (fenced(SCRIPT, "py"), None, SCRIPT),
    "python3": (fenced(SCRIPT, "python3"), None, SCRIPT),
    "Python": (fenced(SCRIPT, "Python"), None, SCRIPT),
    "space before the language": (fenced(SCRIPT, " python"), None, SCRIPT),
    "more words after the language": (fenced(SCRIPT, "python title=a.py"), None, SCRIPT),
    "file name after the language": (fenced(SCRIPT, "python:a.py"), None, SCRIPT),
    "no language": (fenced(SCRIPT, ""), None, SCRIPT),
    "language on the next line": (fenced("python\n" + SCRIPT, ""), None, SCRIPT),
    "Python3 on the next line": (fenced("\nPython3\n" + SCRIPT, ""), None, SCRIPT),
    "tildes": (fenced(SCRIPT, "python", "~~~"), None, SCRIPT),
    "four backticks": (fenced(SCRIPT, "python", "````"), None, SCRIPT),
    "CRLF": (fenced(SCRIPT).replace("\n", "\r\n"), None, SCRIPT),
    "indented": ("1. Code:\n\n   ```python\n   def f():\n       return 1\n   ```\n", None, "def f():\n    return 1\n"),
    "fence after a sentence": (f"The program: ```python\n{SCRIPT}```", None, SCRIPT),
    "closing fence glued to the code": ("```python\nprint(1)```\nDone.", None, "print(1)\n"),
    "unclosed": ("```python\n" + SCRIPT, None, SCRIPT),
    "unclosed in the middle of a line": ("```python\n" + SOLVE + "print(sol", None, SOLVE + "print(sol\n"),
    "closing fence only": (SCRIPT + "```\nThis adds one.", None, SCRIPT),
    "demo with the entry point": (fenced(SOLVE) + "Try it:\n" + fenced("print(solve(1))\n"), "solve", SOLVE),
    "demo without an entry point": (fenced(SOLVE) + "Try it:\n" + fenced("print(solve(1))\n"), None, SOLVE),
    "correction with the entry point": (fenced(SOLVE) + "Wait.\n" + fenced(OTHER), "solve", OTHER),
    "correction without an entry point": (fenced(SOLVE) + "Wait.\n" + fenced(OTHER), None, OTHER),
    "correction, then a demo": (fenced(SOLVE) + fenced(OTHER) + fenced("assert solve(1) == 3\n"), None, OTHER),
    "helper first": (fenced("def helper(): pass\n") + fenced(SOLVE), "solve", SOLVE),
    "helper last": (fenced(SOLVE) + fenced("def helper(): pass\n"), "solve", SOLVE),
    "a call is no definition": (fenced(SOLVE) + fenced("solve(1)\nresolve = 1\n"), "solve", SOLVE),
    "method": (fenced("class Solution:\n" + "    def solve(self): pass\n"), "solve", None),
    "entry point nowhere": (fenced(SCRIPT), "solve", SCRIPT),
    "assigned entry point": (fenced("solve = lambda x: x\n") + fenced(SCRIPT), "solve", "solve = lambda x: x\n"),
    "fenced summary": (fenced(SCRIPT) + fenced("It reads n and prints n + 1.\n", ""), None, SCRIPT),
    "fenced summary marked text": (fenced(SCRIPT) + fenced("x = 1\n", "text"), None, SCRIPT),
    "fenced sample output": (fenced(SCRIPT) + "Output:\n" + fenced("42\n", ""), None, SCRIPT),
    "fenced sample word": (fenced(SCRIPT) + "Output:\n" + fenced("YES\n", ""), None, SCRIPT),
    "shell command": (fenced(SCRIPT) + fenced("python a.py\n", "bash"), None, SCRIPT),
    "sample input first": (fenced("3\n1 2 3\n", "") + fenced(SCRIPT, ""), None, SCRIPT),
    "other language only": (fenced("int main() { return 0; }\n", "cpp"), None, None),
    "broken program": (fenced("def solve(x:\n    return\n"), "solve", "def solve(x:\n    return\n"),
    "broken program without a language": (fenced("def solve(x:\n  return\n", ""), None, "def solve(x:\n  return\n"),
    "broken after whole": (fenced(SOLVE) + fenced("def g(:\n"), None, SOLVE),
    "empty block": (fenced(""), None, None),
    "empty block, then code": (fenced("") + fenced(SCRIPT), None, SCRIPT),
    "thinking": (f"<think>\n{fenced(OTHER)}</think>\n{fenced(SOLVE)}", None, SOLVE),
    "thinking opened in the prompt": (f"{fenced(OTHER)}</think>\n{fenced(SOLVE)}", None, SOLVE),
    "thinking without end": (f"<think>\n{fenced(SOLVE)}", None, None),
    "thinking twice": (f"<think>a</think>{fenced(SOLVE)}<think>b", None, None),
    "thinking only": (f"<think>\n{fenced(SOLVE)}</think>\nDone.", None, None),
    "no fence": (SCRIPT, None, SCRIPT),
    "no fence, a definition": ("\n\n" + SOLVE + "\n", None, SOLVE),
    "prose": ("I do not know how to solve this.", None, None),
    "one word": ("Sorry", None, None),
    "a number": ("42", None, None),
    "nothing": ("", None, None),
    "inline code": ("Use `print(1)` here.", None, None),
    "backticks in a string": (fenced("print('```')\nprint(`1`)\n"), None, "print('```')\nprint(`1`)\n"),
    "fence in a docstring": (
        fenced('def f():\n    """\n    ```\n    f()\n    ```\n    """\n    return 1\n'),
        None,
        'def f():\n    """\n    ```\n    f()\n    ```\n    """\n    return 1\n',
    ),
    "form feed in a line": (fenced("x = 'a\x0cb'\n"), None, "x = 'a\x0cb'\n"),
}
CASES["method"] = (*CASES["method"][:2], "class Solution:\n    def solve(self): pass\n")


@pytest.mark.parametrize("name", CASES)
def test_program(name: str) -> None:
    reply, entry_point, program = CASES[name]
    assert extract_program(reply, entry_point).program == program


def test_layout_of_one_block() -> None:
    extraction = extract_program(f"Text.\n{fenced(SOLVE)}\n  The end.\n")
    assert (extraction.blocks, extraction.is_exactly_one_block) == (1, True)
    assert extraction.trailing_text == "The end."
    assert not extraction.has_backtick_inside


def test_layout_of_several_blocks() -> None:
    extraction = extract_program(fenced(SOLVE) + fenced("solve(1)\n") + fenced("text\n", "text"))
    assert (extraction.blocks, extraction.is_exactly_one_block) == (2, False)
    assert extraction.trailing_text.startswith("```python")


@pytest.mark.parametrize("reply", ["```python\n" + SOLVE, SOLVE, fenced(SOLVE) + fenced("1\n", "text")])
def test_not_exactly_one_block(reply: str) -> None:
    extraction = extract_program(reply)
    assert extraction.program == SOLVE
    assert not extraction.is_exactly_one_block


def test_backtick_inside() -> None:
    assert extract_program(fenced("print('`')\n")).has_backtick_inside
