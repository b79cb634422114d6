"""The run report: complete, in progress, corrupt and hostile runs."""

import json
import re
from html.parser import HTMLParser

import pytest

from smalt.reports.run_folder import ReportError, read_metrics
from smalt.reports.run_report import MISSING, write_run_report

EVALUATION = {
    "pass_at_1": [0.2, 0.25],
    "ci95": [[0.1, 0.3], [0.15, 0.35]],
    "problems": 30,
    "samples_per_problem": 4,
    "seconds": 75.0,
}
SUMMARY = {
    "before": EVALUATION,
    "after": {**EVALUATION, "pass_at_1": [0.3, 0.45], "ci95": [[0.2, 0.4], [0.35, 0.55]]},
    "stages": {"collect": 12.5, "train": 300},
    "of a later version": 1,
}
HOSTILE = "</pre><script>alert('x')</script><img src=x onerror=alert(1)>{{ 7 * 7 }}\x1b[2J\ud800"


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "lab-cobalt"
    folder.mkdir()
    put(folder, "summary.json", json.dumps(SUMMARY))
    put(
        folder,
        "metrics.jsonl",
        '{"step": 1, "reward_mean": 0.1, "new": 2}\n{"step": 2, "reward_mean": 0.2}\n',
    )
    put(folder, "config.yaml", "method: cobalt\nnote: <b>bold</b>\n")
    dialogue = {
        "problem_id": "lab/1",
        "turns": [
            {"role": "user", "text": "Add two numbers."},
            {"role": "assistant", "text": "So:\n```python\nprint(1 < 2)\n```", "verdict": "wrong_answer"},
            {"role": "user", "text": "It printed True."},
            {"role": "assistant", "text": "```python\nprint(3)\n```", "verdict": "passed"},
        ],
    }
    put(folder, "dialogues.json", json.dumps([dialogue]))
    return folder


def put(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def report(folder, **options):
    return write_run_report(folder, folder.parent / "report.html", **options).read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Collects tags and attributes; checks that what is opened is closed."""

    VOID = ("meta", "path", "use", "br")

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def tags(page):
    parser = Tags()
    parser.feed(page)
    assert parser.open == []
    return parser


def test_a_complete_run(run):
    page = report(run, training_turns=1)
    assert "<title>lab-cobalt · Smalt</title>" in page
    assert re.search(r'20\.0\s*<span class="arrow">→</span>\s*<span class="after">30\.0</span>', page)
    assert re.search(r'25\.0\s*<span class="arrow">→</span>\s*<span class="after">45\.0</span>', page)
    assert "+10.0 points" in page and "+20.0 points" in page
    assert "95 % interval 10.0 to 30.0" in page
    assert "<td>25.0 (15.0 to 35.0)</td><td>45.0 (35.0 to 55.0)</td><td>+20.0</td>" in page
    assert "30 problems, 4 samples each, 1 min 15 s" in page
    assert "last turn in training" in page
    assert '<h4>Program 2<span class="badge good">passed</span></h4>' in page
    assert '<span class="badge bad">wrong answer</span>' in page
    assert "<pre>\nprint(1 &lt; 2)</pre>" in page
    assert "Not in metrics.jsonl:" in page
    assert "note: &lt;b&gt;bold&lt;/b&gt;" in page
    shown = [key for key, sentence in MISSING.items() if sentence in page]
    assert shown == ["protocol"]


def test_one_file_without_scripts_or_network(run):
    page = report(run)
    found = tags(page)
    assert not found.tags & {"script", "link", "img", "iframe", "object", "base"}
    assert not {name for name in found.attributes if name.startswith("on") or name in ("src", "href")}
    assert set(re.findall(r'https?://[^"<\s]+', page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_same_run_gives_the_same_bytes(run):
    assert report(run) == report(run)


def test_protocol_horizon_and_paired_difference_of_the_summary(run):
    extra = {
        "protocol": "Trajectories do not stop.",
        "training_turns": 1,
        "paired_difference": {"difference": [0.1, 0.2], "ci95": [[0.05, 0.15], [-0.01, 0.4]], "problems": 30},
    }
    put(run, "summary.json", json.dumps(SUMMARY | extra))
    page = report(run)
    assert "Trajectories do not stop." in page and "last turn in training" in page
    assert "<td>+20.0 (-1.0 to +40.0)</td>" in page


def test_an_empty_run_says_what_is_missing(run):
    for file in run.iterdir():
        file.unlink()
    page = report(run)
    tags(page)
    for name in ("summary.json", "metrics.jsonl", "config.yaml", "dialogues.json"):
        assert MISSING[name] in page
    assert "<svg" not in page


def test_a_run_in_progress(run):
    put(run, "summary.json", json.dumps({"before": EVALUATION}))
    put(run, "dialogues.json", "[]")
    page = report(run)
    assert MISSING["after"] in page and MISSING["stages"] in page and MISSING["dialogues.json"] in page
    assert MISSING["before"] not in page
    assert "points</p>" not in page and "<td>20.0 (10.0 to 30.0)</td><td>–</td><td>–</td>" in page


def test_untrusted_text_is_escaped(run):
    turns = [{"role": role, "text": HOSTILE, "verdict": HOSTILE} for role in ("user", "program", HOSTILE)]
    put(run, "dialogues.json", json.dumps([{"problem_id": HOSTILE, "turns": turns}]))
    hostile_plain = HOSTILE.replace("\ud800", "").replace("\x1b", "")
    put(run, "config.yaml", json.dumps({"text": hostile_plain}))
    put(run, "summary.json", json.dumps(SUMMARY | {"stages": {hostile_plain: 1}, "protocol": HOSTILE}))
    page = report(run)
    found = tags(page)
    assert not found.tags & {"script", "img"} and "onerror" not in found.attributes
    assert "&lt;script&gt;" in page and "{{ 7 * 7 }}" in page
    assert "␛[2J" in page


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("metrics.jsonl", '{"step": 1}\n\n{"step": 2, "rew', r"metrics\.jsonl:3: not JSON"),
        ("metrics.jsonl", "[1]\n", r"metrics\.jsonl:1: not an object"),
        ("metrics.jsonl", '{"step": 1}\n{"kl": 1}\n', r"metrics\.jsonl:2: .*numeric 'step'"),
        ("metrics.jsonl", '{"step": NaN}\n', r"metrics\.jsonl:1: .*numeric 'step'"),
        ("summary.json", "{\n", r"summary\.json:2: not JSON"),
        ("summary.json", '{"before": {"problems": 1}}', r"summary\.json: before\.pass_at_1: Field required"),
        ("summary.json", json.dumps({"after": EVALUATION | {"ci95": []}}), r"after: .*ci95 has 0 turns"),
        ("summary.json", '{"stages": {"train": NaN}}', r"summary\.json: stages\.train"),
        ("dialogues.json", '[{"problem_id": "x"}]', r"dialogues\.json: 0\.turns: Field required"),
        ("config.yaml", "a: 1\nb: [1\n", r"config\.yaml:3: not YAML"),
    ],
)
def test_corrupt_files_are_named(run, name, text, message):
    put(run, name, text)
    with pytest.raises(ReportError, match=message):
        report(run)


def test_bytes_that_are_no_text_are_corrupt_too(run):
    (run / "metrics.jsonl").write_bytes(b'{"step": 1, "\xff": 2}\n')
    with pytest.raises(ReportError, match=r"metrics\.jsonl:1"):
        report(run)


def test_a_failed_report_leaves_the_old_one(run, tmp_path, monkeypatch):
    old = report(run)
    monkeypatch.setattr("smalt.reports.pages.os.fsync", lambda _: 1 / 0)
    put(run, "config.yaml", "changed: true\n")
    with pytest.raises(ZeroDivisionError):
        report(run)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == old
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_the_folder_of_the_report_is_made(run, tmp_path):
    assert write_run_report(run, tmp_path / "a" / "b.html").exists()
    with pytest.raises(NotADirectoryError, match="nowhere"):
        write_run_report(tmp_path / "nowhere", tmp_path / "c.html")


def test_rows_of_one_step_are_merged(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 2, "kl": 1}\n{"step": 1, "kl": 0}\n{"step": 2, "kl": 3}\n{"step": 1, "entropy": 4}\n')
    assert read_metrics(path) == [{"step": 1, "kl": 0, "entropy": 4}, {"step": 2, "kl": 3}]
    assert read_metrics(tmp_path / "none.jsonl") == []
