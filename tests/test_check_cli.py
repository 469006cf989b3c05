"""The command: formats, exit codes, filters, coverage, stubs; and the shipped claims."""

from __future__ import annotations

import json
import shutil
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from memwall.cli import run

ROOT = Path(__file__).parents[1]
CHAPTER = ROOT / "configs" / "claims" / "chapter4.yaml"

CLAIMS = """\
text: demo
title: A demonstration
aside:
  - {match: '^4\\.\\d ', reason: section numbers}
claims:
  - id: good
    where: "4.1"
    label: H100 bandwidth
    printed: 3.35 TB/s
    compute: gpu("h100").bandwidth_bytes_per_s
  - id: wrong
    where: "4.2, a, b"
    label: "100% of: L2"
    printed: 12 TB/s
    compute: 8.5*TB/s
    verdict: differs
    reason: Measured <8.8> & "not" 12.
  - id: changed
    where: "4.3"
    label: ridge
    printed: 300 FLOP/byte
    compute: gpu("h100").ridge_points.bf16
"""


@pytest.fixture
def claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo.yaml").write_text(CLAIMS)
    return "demo.yaml"


def as_recorded(path: str) -> None:
    Path(path).write_text(CLAIMS.replace("300 FLOP", "295 FLOP"))


def test_exit_codes(claims: str) -> None:
    assert run(["check", claims]) == 1
    assert run(["check", claims, "--where", "4.1"]) == 0
    as_recorded(claims)
    assert run(["check", claims]) == 0
    assert run(["check", claims, "--strict"]) == 1
    assert run(["check", claims, "--strict", "--verdict", "holds"]) == 0


def test_json(claims: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", claims, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    good, wrong, changed = document["claims"]
    keys = {"id", "where", "label", "printed", "unit", "value", "factor", "verdict", "reason"}
    assert keys | {"depends_on", "source"} <= set(good)
    assert good["value"] == pytest.approx(3.35232)
    assert (wrong["verdict"], wrong["factor"], wrong["line"]) == ("differs", pytest.approx(12 / 8.5), 11)
    assert (changed["verdict"], changed["recorded"], changed["as_recorded"]) == ("differs", "holds", False)


def test_junit(claims: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", claims, "--format", "junit", "--strict"])
    suites = ElementTree.fromstring(capsys.readouterr().out.encode())
    assert suites.attrib["failures"] == "2"
    cases = {case.attrib["name"]: case for case in suites.iter("testcase")}
    assert cases["good"].find("failure") is None
    assert cases["wrong"].attrib["line"] == "11"
    failure = cases["wrong"].find("failure")
    assert failure is not None
    assert "demo.yaml:11" in str(failure.text)
    assert failure.attrib["message"] == "100% of: L2: prints 12 TB/s, right is 8.5 TB/s (differs)"


def test_junit_to_a_file_by_its_ending(claims: str) -> None:
    run(["check", claims, "-o", "report.xml"])
    assert ElementTree.parse("report.xml").getroot().tag == "testsuites"


def test_github(claims: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", claims, "--format", "github", "--strict"])
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == (
        "::error file=demo.yaml,line=11,col=1,title=memwall%3A wrong"
        "::100%25 of: L2: prints 12 TB/s, right is 8.5 TB/s (differs)"
    )
    assert "line=18" in second
    assert "was holds, is differs" in second
    assert last == "::notice title=memwall check::1 of 3 claims as they should be"


def test_text_and_markdown(claims: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", claims])
    text = capsys.readouterr().out
    assert "Changed since recorded" in text
    assert "good" not in text.partition("Does not hold")[2]
    run(["check", claims, "--all"])
    assert "3.352 TB/s" in capsys.readouterr().out
    run(["check", claims, "--format", "markdown"])
    errata = capsys.readouterr().out
    assert "| where | what | printed | right | factor | why | touches |" in errata
    assert errata.index("12 TB/s") < errata.index("300 FLOP/byte")  # what is furthest off comes first
    run(["check", claims, "--explain", "--where", "changed"])
    assert "memwall gpu show h100 --json: ridge_points.bf16 = 295.14 FLOP/byte" in capsys.readouterr().out


def test_csv(claims: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", claims, "--format", "csv"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("id,where,label,printed,unit,value")
    assert len(lines) == 4


def test_coverage(claims: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "4.1 Bandwidth\nAn H100 has 3.35 TB/s and 80 GB.\n4.2 L2\n12TB/s, 12 GB/s, and 12 in a cell; 1,024.\n"
    )
    Path("text.txt").write_text(text)
    assert run(["check", "--coverage", "text.txt", claims, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["numbers"], found["covered"]) == (8, 3)
    assert found["aside"] == {"section numbers": 2}
    places = [(each["line"], each["column"], each["number"], each["unit"]) for each in found["uncovered"]]
    assert places == [(2, 27, "80", "GB"), (4, 9, "12", "GB/s"), (4, 36, "1,024", "")]
    assert run(["check", "--coverage", "text.txt", claims, "--strict"]) == 1
    assert "Without a claim" in capsys.readouterr().out


def test_a_claim_covers_its_number_in_its_own_region(claims: str, capsys: pytest.CaptureFixture[str]) -> None:
    regions = "regions:\n" + "".join(f"  - {{where: '{n}', match: '^{n} '}}\n" for n in ("4.1", "4.2"))
    Path(claims).write_text(CLAIMS.replace("claims:", f"{regions}claims:"))
    Path("text.txt").write_text(
        "12 TB/s before\n4.1 A\n3.35 TB/s and 12 TB/s\n4.2 B\n12 TB/s and 3.35 TB/s\n"
    )
    run(["check", "--coverage", "text.txt", claims, "--json"])
    found = json.loads(capsys.readouterr().out)
    places = [(each["line"], each["where"], each["number"]) for each in found["uncovered"]]
    assert places == [(3, "4.1", "12"), (5, "4.2", "3.35")]


def test_a_stub_is_a_claim_that_can_be_checked(claims: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--new", "AI=1,365 FLOP/byte"]) == 0
    stub = capsys.readouterr().out
    Path("new.yaml").write_text(f"text: new\ntitle: New\nclaims:\n{stub}")
    assert run(["check", "new.yaml"]) == 0  # its example computes 1365.3
    assert "1 claim of" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", ["3.35 TB/s", "H100: 80-100 TB/s", '~4,500 "TFLOPS"'.replace('"', ""), "$2.50/hr"]
)
def test_stubs_of_what_people_paste(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    assert run(["check", "--new", words]) == 0
    (claim,) = yaml.safe_load(capsys.readouterr().out)
    assert claim["printed"] in words


# The claims that come with memwall.


def test_every_shipped_verdict_is_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    start = time.process_time()
    assert run(["check", "--json"]) == 0
    assert time.process_time() - start < 2
    claims = json.loads(capsys.readouterr().out)["claims"]
    assert len(claims) >= 300
    assert {claim["text"] for claim in claims} == {"article", "chapter4"}


def test_every_shipped_finding_has_its_derivation(capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", "--explain", "--verdict", "differs,contradicts,mixed"])
    sections = capsys.readouterr().out.split("\n\n")[1:]
    assert len(sections) > 100
    for section in sections:
        assert any(word in section for word in ("right ", "one part ", "against ", "text ")), section
        assert "because " in section


KNOWN = {
    # Worked by hand: 4 heads' worth of reading the datasheets, and the formulas beside the text's own.
    "b200_peak": ("mixed", 2250),
    "gb300_bandwidth": ("differs", 8.0),
    "smem_bandwidth": ("differs", 132 * 128 * 1.98e9 / 1e12),
    "pcie_bandwidth": ("mixed", 63),
    "tile_intensity": ("differs", 128 / 2),
    "hbm_clock": ("differs", 5.238e3 / 2),
    "hbm_formula": ("differs", 5 * 1024 * 819e6 * 2 / 8 / 1e12),
    "h100_stack_bw": ("mixed", 1024 * 5.238 / 8),
    "v100_stack_gb": ("differs", 16 / 4),
    "standard_head": ("holds as arithmetic", (4 * 4096**2 + 4 * 4096 * 128) * 2 / 1e6),
    "fa1_flash": ("contradicts", 4 * 4096 * 128 * 2 / 1e6),
    "backward_standard": ("differs", 80 * 64 * 32768**2 * 2 / 1e12),
    "recompute_cost": ("differs", 100 / 6),
    "flash_mha": ("differs", 80 * 64 * 4 * 4096 * 128 * 2 / 1e9),
    "flash_gqa": ("differs", 80 * (2 * 64 + 2 * 8) * 4096 * 128 * 2 / 1e9),
    "prod_standard": ("differs", 80 * 64 * (4 * 8192**2 * 2 + (2 + 2 / 8) * 8192 * 128 * 2) / 1e9),
    "kv_32": ("mixed", 32 * 2 * 80 * 8 * 128 * 4096 * 2 / 8 / 1e9),
    "lever_h200": ("differs", 141 - 80),
    "scores_128k": ("mixed", 131072**2 * 2 / 1e9),
    "h100_ratio": ("holds", 989.4 / 3.35232),
    "gemm_intensity": ("holds", 4096 / 3),
}


def test_known_findings_against_hand_worked_values(capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", str(CHAPTER), "--json"])
    claims = {claim["id"]: claim for claim in json.loads(capsys.readouterr().out)["claims"]}
    for name, (verdict, right) in KNOWN.items():
        assert claims[name]["verdict"] == verdict, name
        assert claims[name]["value"] == pytest.approx(right, rel=2e-3), name


def test_one_wrong_input_is_reported_once_with_what_follows(capsys: pytest.CaptureFixture[str]) -> None:
    run(["check", str(CHAPTER), "--json"])
    claims = json.loads(capsys.readouterr().out)["claims"]
    following = {claim["id"] for claim in claims if claim["starts_at"] == ["chapter4.score_passes"]}
    expected = {
        "n2_terms",
        "standard_head",
        "standard_model",
        "standard_seconds",
        "plain_traffic",
        "k_standard",
    }
    assert expected <= following


def test_a_changed_constant_is_noticed(tmp_path: Path) -> None:
    ridge = "'gpu(\"h100\").ridge_points.bf16'"
    text = CHAPTER.read_text()
    assert ridge in text
    text = text.replace(ridge, ridge.replace("gpu", "1.02 * gpu"), 1)
    path = tmp_path / "chapter4.yaml"
    path.write_text(text)
    assert run(["check", str(path)]) == 1


@pytest.mark.parametrize("name", ["chapter4", "article"])
def test_the_errata_are_those_of_the_claims(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    run(["check", name, "--format", "markdown"])
    path = f"configs/claims/{name}-errata.md"
    assert Path(path).read_text() == capsys.readouterr().out, (
        f"memwall check {name} --format markdown -o {path}"
    )


@pytest.mark.parametrize("path", ["README.md", "configs/claims/chapter4-review.md"])
def test_the_projects_own_numbers_are_right(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["check", path, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["claims"]) >= 10


def test_a_copied_folder_of_claims_works_too(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "configs" / "claims", tmp_path / "claims")
    assert run(["check", str(tmp_path / "claims" / "article.yaml")]) == 0


def test_the_pre_commit_hooks_are_commands_of_ours() -> None:
    import yaml

    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["entry"] for hook in hooks] == ["memwall check", "memwall check --fix"]
    assert all({"id", "name", "entry", "language"} <= set(hook) for hook in hooks)


def test_every_command_of_the_worked_review_questions_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "configs" / "claims" / "chapter4-review.md").read_text()
    commands = [line for line in text.splitlines() if line.startswith("memwall ")]
    assert len(commands) >= 10
    for command in commands:
        assert run(command.split()[1:]) == 0, command
    capsys.readouterr()
