"""Twenty small programs with a number in them to vary, and for each another way to the same answer.

`source` is what gets graded: a function `solve`, written as people write it, with `$K` where the number goes. The
answer comes from a formula that shares nothing with it, so that a workload never calls a wrong program right.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Kind = str
"""What one argument is: "int", "ints" (a list, never empty) or "text" (letters or brackets, never empty)."""


@dataclass(frozen=True)
class Template:
    """A program with a hole."""

    kinds: tuple[Kind, ...]
    """Kinds of the arguments of `solve`."""
    source: str
    answer: Callable[..., Any]
    """`answer(k, *arguments)`: an int, a text, or a list of ints that is never empty."""
    low: int = -50
    high: int = 50
    """Range of the numbers in the arguments."""
    letters: str = "abcde"

    def arguments(self, random: Random) -> tuple[Any, ...]:
        """Draw one set of arguments."""
        return tuple(self._argument(kind, random) for kind in self.kinds)

    def _argument(self, kind: Kind, random: Random) -> Any:
        if kind == "int":
            return random.randint(self.low, self.high)
        length = random.randint(4, 12)
        if kind == "ints":
            return [random.randint(self.low, self.high) for _ in range(length)]
        return "".join(random.choice(self.letters) for _ in range(length))


def _ways(total: int, coins: tuple[int, ...]) -> int:
    if total <= 0 or not coins:
        return int(total == 0)
    return _ways(total - coins[0], coins) + _ways(total, coins[1:])


def _depth(text: str) -> int:
    return max(itertools.accumulate((1 if letter == "(" else -1 for letter in text), initial=0))


def _climb(k: int, numbers: list[int]) -> int:
    lengths: list[int] = []
    for number in numbers:
        lengths.append(1 + max((n for n, m in zip(lengths, numbers, strict=False) if m < number), default=0))
    return max(lengths) * k


TEMPLATES = (
    Template(
        ("ints",),
        """
def solve(numbers):
    result = []
    for number in numbers:
        result.append(number * number + $K)
    return result
""",
        lambda k, numbers: [k + n**2 for n in numbers],
    ),
    Template(
        ("ints",),
        """
def solve(numbers):
    return sum(1 for number in numbers if number % ($K + 2) == 0)
""",
        lambda k, numbers: len([n for n in numbers if n in range(-(k + 2) * 99, 9999, k + 2)]),
    ),
    Template(
        ("int", "int"),
        """
def solve(a, b):
    a, b = abs(a * $K), abs(b * $K)
    while b:
        a, b = b, a % b
    return a
""",
        lambda k, a, b: math.gcd(a, b) * k,
    ),
    Template(
        ("int",),
        """
def solve(limit):
    is_prime = [True] * (limit + 1)
    for n in range(2, limit + 1):
        for multiple in range(2 * n, limit + 1, n):
            is_prime[multiple] = False
    return sum(is_prime[2:]) * $K
""",
        lambda k, limit: k * sum(all(n % d for d in range(2, n)) for n in range(2, limit + 1)),
        low=2,
        high=60,
    ),
    Template(
        ("int",),
        """
def solve(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % (1000 + $K)
    return a
""",
        lambda k, n: sum(math.comb(n - 1 - i, i) for i in range((n + 1) // 2)) % (1000 + k),
        low=1,
        high=60,
    ),
    Template(
        ("ints",),
        """
def solve(numbers):
    turn = $K % len(numbers)
    return numbers[turn:] + numbers[:turn]
""",
        lambda k, numbers: [numbers[(i + k) % len(numbers)] for i in range(len(numbers))],
    ),
    Template(
        ("text",),
        """
def solve(text):
    letters = []
    for letter in text:
        letters.append(chr((ord(letter) - ord("a") + $K) % 26 + ord("a")))
    return "".join(letters)
""",
        lambda k, text: text.translate({97 + i: 97 + (i + k) % 26 for i in range(26)}),
        letters="abcdefghijklmnopqrstuvwxyz",
    ),
    Template(
        ("ints",),
        """
from bisect import bisect_left

def solve(numbers):
    tails = []
    for number in numbers:
        place = bisect_left(tails, number)
        tails[place : place + 1] = [number]
    return len(tails) * $K
""",
        _climb,
    ),
    Template(
        ("int",),
        """
def solve(total):
    ways = [1] + [0] * total
    for coin in (2, 5, $K + 10):
        for amount in range(coin, total + 1):
            ways[amount] += ways[amount - coin]
    return ways[total]
""",
        lambda k, total: _ways(total, (2, 5, k + 10)),
        low=1,
        high=40,
    ),
    Template(
        ("ints",),
        """
def solve(numbers):
    best = current = numbers[0] - $K
    for number in numbers[1:]:
        current = max(number - $K, current + number - $K)
        best = max(best, current)
    return best
""",
        lambda k, numbers: max(
            sum(numbers[i:j]) - k * (j - i) for i in range(len(numbers)) for j in range(i + 1, len(numbers) + 1)
        ),
    ),
    Template(
        ("ints",),
        """
def merge(left, right):
    merged = []
    while left and right:
        merged.append(left.pop(0) if left[0] <= right[0] else right.pop(0))
    return merged + left + right

def solve(numbers):
    if len(numbers) < 2:
        return [number for number in numbers]
    middle = len(numbers) // 2
    return merge(solve(numbers[:middle]), solve(numbers[middle:]))[:$K + 2]
""",
        lambda k, numbers: sorted(numbers)[: k + 2],
    ),
    Template(
        ("ints",),
        """
from collections import Counter

def solve(numbers):
    seen = Counter()
    pairs = 0
    for number in numbers:
        pairs += seen[$K - number]
        seen[number] += 1
    return pairs
""",
        lambda k, numbers: sum(a + b == k for a, b in itertools.combinations(numbers, 2)),
        low=-5,
        high=10,
    ),
    Template(
        ("text",),
        """
def solve(text):
    depth = deepest = 0
    for letter in text:
        depth += 1 if letter == "(" else -1
        deepest = max(deepest, depth)
    return deepest + $K
""",
        lambda k, text: _depth(text) + k,
        letters="()",
    ),
    Template(
        ("text",),
        """
def solve(text):
    parts = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or text[end] != text[start]:
            parts.append(text[start] + str((end - start) * $K))
            start = end
    return "".join(parts)
""",
        lambda k, text: "".join(letter + str(len(list(run)) * k) for letter, run in itertools.groupby(text)),
        letters="ab",
    ),
    Template(
        ("int",),
        """
def solve(n):
    n += $K
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps
""",
        lambda k, n: _collatz(n + k),
        low=1,
        high=30,
    ),
    Template(
        ("int",),
        """
def solve(n):
    digits = []
    while n:
        n, digit = divmod(n, $K + 1)
        digits.append(digit)
    return digits[::-1]
""",
        lambda k, n: _digits(n, k + 1),
        low=1,
        high=900,
    ),
    Template(
        ("int", "int"),
        """
def solve(rows, columns):
    grid = [[1] * columns for _ in range(rows)]
    for row in range(1, rows):
        for column in range(1, columns):
            grid[row][column] = grid[row - 1][column] + grid[row][column - 1]
    return grid[-1][-1] * $K
""",
        lambda k, rows, columns: math.comb(rows + columns - 2, rows - 1) * k,
        low=1,
        high=8,
    ),
    Template(
        ("ints",),
        """
from collections import deque

def solve(numbers):
    width = $K % 3 + 2
    waiting, result = deque(), []
    for place, number in enumerate(numbers):
        while waiting and numbers[waiting[-1]] <= number:
            waiting.pop()
        waiting.append(place)
        if waiting[0] <= place - width:
            waiting.popleft()
        if place >= width - 1:
            result.append(numbers[waiting[0]])
    return result
""",
        lambda k, numbers: [max(numbers[i : i + k % 3 + 2]) for i in range(len(numbers) - k % 3 - 1)],
    ),
    Template(
        ("ints", "int"),
        """
def solve(numbers, wanted):
    ordered = sorted(numbers)
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < wanted + $K:
            low = middle + 1
        else:
            high = middle
    return low
""",
        lambda k, numbers, wanted: bisect.bisect_left(sorted(numbers), wanted + k),
    ),
    Template(
        ("ints",),
        """
import heapq

class Machine:
    def __init__(self, numbers):
        self.queue = list(numbers)
        heapq.heapify(self.queue)

    def run(self):
        while len(self.queue) > 1:
            first, second = heapq.heappop(self.queue), heapq.heappop(self.queue)
            heapq.heappush(self.queue, second + $K)
        return self.queue[0]

def solve(numbers):
    return Machine(numbers).run()
""",
        lambda k, numbers: functools.reduce(
            lambda queue, _: sorted([*queue[2:], queue[1] + k]), range(len(numbers) - 1), sorted(numbers)
        )[0],
    ),
)


def _collatz(n: int) -> int:
    return 0 if n == 1 else 1 + _collatz(3 * n + 1 if n % 2 else n // 2)


def _digits(n: int, base: int) -> list[int]:
    return [*(_digits(n // base, base) if n >= base else []), n % base]
