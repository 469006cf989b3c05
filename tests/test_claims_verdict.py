"""Verdicts: each of the seven, the roots of errors, second routes; worked by hand."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from memwall.catalog import Entry
from memwall.claims.claim import ClaimsFile
from memwall.claims.docket import Docket, at, judge
from memwall.claims.explain import derivation
from memwall.claims.load import from_entry
from memwall.claims.verdict import Judged

HEAD = """\
text: demo
title: A demonstration
inputs:
  vendor_peak: {value: 100, unit: TFLOPS, source: {seen: "a datasheet"}}
claims:
"""


def file_of(claims: str, head: str = HEAD) -> ClaimsFile:
    text = head + textwrap.indent(textwrap.dedent(claims).strip(), "  ") + "\n"
    return from_entry(Entry("demo", text, "demo.yaml", user=True))


def docket_of(claims: str) -> Docket:
    file = file_of(claims)
    return judge([file], lambda path: file, lambda claim: True)


def judged_of(claims: str) -> dict[str, Judged]:
    return {each.claim.id: each for each in docket_of(claims).judged}


def test_holds_within_the_printed_rounding() -> None:
    found = judged_of("""
        - {id: a, where: "1", label: a, printed: "0.5 s", compute: 1.45*TB / (3*TB/s)}
        - {id: b, where: "1", label: b, printed: "0.50 s", compute: 1.45*TB / (3*TB/s),
           verdict: differs, reason: r}
    """)
    assert found["a"].verdict == "holds"
    assert found["b"].verdict == "differs"  # 0.4833 rounds to 0.48
    assert found["b"].factor == pytest.approx(0.5 / (1.45 / 3))
    assert all(each.as_recorded for each in found.values())


CHAIN = """
    - {id: peak, where: "1", label: peak, printed: 200 TFLOPS, compute: vendor_peak,
       verdict: differs, reason: sparse}
    - {id: bw, where: "1", label: bandwidth, printed: 2 TB/s, compute: 2*TB/s}
    - {id: ridge, where: "2", label: ridge, printed: 100 FLOP/byte, compute: peak / bw,
       verdict: holds as arithmetic, reason: from the peak}
    - {id: twice, where: "3", label: twice, printed: 200 FLOP/byte, compute: 2 * ridge,
       verdict: holds as arithmetic, reason: from the ridge}
"""


def test_an_error_is_traced_to_where_it_starts() -> None:
    docket = docket_of(CHAIN)
    found = {each.claim.id: each for each in docket.judged}
    assert found["ridge"].verdict == "holds as arithmetic"
    assert found["ridge"].wrong_inputs == ("peak",)
    assert found["ridge"].depends_on == ("peak", "bw")
    assert found["ridge"].value is not None
    assert found["ridge"].value[0].to("FLOP/byte") == 50  # the right value comes from the right inputs
    assert found["twice"].wrong_inputs == ("ridge",)
    assert found["twice"].roots == ("demo.peak",)
    assert [each.claim.id for each in docket.followers["demo.peak"]] == ["ridge", "twice"]
    assert docket.changed == []


def test_arithmetic_that_is_wrong_by_itself_differs_whatever_its_inputs() -> None:
    found = judged_of(CHAIN.replace("200 FLOP/byte", "300 FLOP/byte").replace("from the ridge", "r"))
    assert found["twice"].verdict == "differs"
    assert found["twice"].roots == ("demo.twice",)
    assert not found["twice"].as_recorded


def test_rounded_inputs_are_allowed_for_in_the_texts_own_arithmetic() -> None:
    found = judged_of("""
        - {id: head, where: "1", label: a head, printed: 105 MB, compute: 138.4*MB,
           verdict: differs, reason: r}
        - {id: whole, where: "1", label: all, printed: 537 GB, compute: 5120 * head,
           verdict: holds as arithmetic, reason: 104.9 was not rounded in between}
    """)
    assert found["whole"].verdict == "holds as arithmetic"  # 5120 x 105 is 537.6, x 104.9 537.1


def test_another_method_of_the_text() -> None:
    found = judged_of("""
        - {id: a, where: "1", label: a, printed: 128 FLOP/byte, compute: 64*FLOP/B, as_printed: 128*FLOP/B,
           verdict: differs, reason: elements are not bytes}
    """)
    assert found["a"].verdict == "differs"
    assert found["a"].arithmetic is not None
    assert found["a"].arithmetic[0].to("FLOP/byte") == 128


def test_contradicts_names_the_other_claim() -> None:
    found = judged_of("""
        - {id: a, where: "1", label: a, printed: ">80%", verdict: contradicts, contradicts: b, reason: r}
        - {id: b, where: "2", label: b, printed: "60%", verdict: not computable, reason: r}
        - {id: c, where: "2", label: c, printed: "59.8%", contradicts: b, verdict: not computable, reason: r}
    """)
    assert found["a"].verdict == "contradicts"
    assert found["a"].depends_on == ("b",)
    assert found["c"].verdict == "not computable"  # 59.8 and 60 may be one number


def test_contradicts_what_follows_from_other_claims() -> None:
    found = judged_of("""
        - {id: a, where: "1", label: a, printed: 280 TF, verdict: not computable, reason: r}
        - {id: b, where: "1", label: b, printed: 420 TF, verdict: not computable, reason: r}
        - {id: gain, where: "2", label: gain, printed: "2.0×", as_printed: b / a, contradicts: [a, b],
           verdict: contradicts, reason: its own table makes 1.5}
    """)  # noqa: RUF001
    assert found["gain"].verdict == "contradicts"
    assert set(found["gain"].depends_on) == {"a", "b"}


def test_mixed_fits_one_of_the_unlike_things_and_not_the_right_value() -> None:
    found = judged_of("""
        - id: peak
          where: "1"
          label: dense peak
          printed: 1979 TFLOPS
          compute: gpu("h100").peak_flops_per_s.bf16
          mixes:
            - {what: sparse, compute: 2 * gpu("h100").peak_flops_per_s.bf16}
            - {what: dense, compute: gpu("h100").peak_flops_per_s.bf16}
          verdict: mixed
          reason: sparse
        - id: neither
          where: "1"
          label: dense peak
          printed: 1500 TFLOPS
          compute: gpu("h100").peak_flops_per_s.bf16
          mixes:
            - {what: sparse, compute: 2 * gpu("h100").peak_flops_per_s.bf16}
            - {what: dense, compute: gpu("h100").peak_flops_per_s.bf16}
          verdict: differs
          reason: neither
    """)
    assert found["peak"].verdict == "mixed"
    assert found["peak"].factor == pytest.approx(2, rel=1e-3)
    assert found["neither"].verdict == "differs"


def test_measured_is_compared_with_what_is_published() -> None:
    claim = """
        - id: rate
          where: "1"
          label: a kernel
          printed: {printed}
          published:
            - {{what: one, value: 579 TFLOPS, source: {{seen: a paper}}}}
            - {{what: other, value: 600-620 TFLOPS, source: {{measured: an H200}}}}
          verdict: measured
    """
    near = judged_of(claim.format(printed="610 TFLOPS"))["rate"]
    assert (near.verdict, near.factor, near.stands) == ("measured", 1.0, True)
    far = judged_of(claim.format(printed="737 TFLOPS"))["rate"]
    assert far.verdict == "measured"
    assert far.factor == pytest.approx(736.5 / 620, rel=2e-3)
    assert not far.stands
    assert far.roots == ("demo.rate",)


def test_what_rests_on_a_doubtful_measurement_holds_as_arithmetic() -> None:
    found = judged_of("""
        - id: rate
          where: "1"
          label: a kernel
          printed: 737 TFLOPS
          published: [{what: one, value: 579 TFLOPS, source: {seen: a paper}}]
          verdict: measured
        - {id: share, where: "1", label: its share, printed: 74%, compute: rate / (989.4*TFLOPS),
           verdict: holds as arithmetic, reason: r}
    """)
    assert found["share"].verdict == "holds as arithmetic"
    assert found["share"].wrong_inputs == ("rate",)
    assert found["share"].roots == ("demo.rate",)


def test_a_repeated_number_is_reported_where_it_was_printed_first() -> None:
    docket = docket_of("""
        - {id: first, where: "1", label: a, printed: 12 TB/s, compute: 8.5*TB/s, verdict: differs, reason: r}
        - {id: again, where: "9", label: a, printed: 12 TB/s, compute: 8.5*TB/s, repeats: first,
           verdict: differs, reason: r}
        - {id: right, where: "9", label: a, printed: 8.5 TB/s, compute: 8.5*TB/s, repeats: first}
    """)
    found = {each.claim.id: each for each in docket.judged}
    assert found["again"].verdict == "differs"
    assert found["again"].roots == ("demo.first",)
    assert found["right"].roots == ()
    assert [each.claim.id for each in docket.followers["demo.first"]] == ["again"]


def test_plain_numbers_need_no_quotes() -> None:
    found = judged_of("""
        - {id: a, where: "1", label: a, printed: 128, compute: 128}
        - {id: b, where: "1", label: b, printed: "2.50", compute: 2.5}
        - {id: c, where: "1", label: c, printed: 1-3, compute: [1, 3.0]}
    """)
    assert [each.verdict for each in found.values()] == ["holds"] * 3


def test_ranges() -> None:
    found = judged_of("""
        - {id: inside, where: "1", label: a, printed: 400-800 cycles, compute: "685"}
        - {id: ends, where: "1", label: a, printed: 50-90%, compute: [1/2, 9/10]}
        - {id: wide, where: "1", label: a, printed: 200-400 cycles, compute: ["280", "500"],
           verdict: differs, reason: r}
        - {id: between, where: "1", label: a, printed: "1.25", compute: ["1", "1.75"]}
        - {id: low, where: "1", label: a, printed: "8", as_printed: inside.low / 50}
    """)
    assert [found[name].verdict for name in ("inside", "ends", "wide", "between", "low")] == [
        "holds", "holds", "differs", "holds", "holds",
    ]  # fmt: skip
    assert found["wide"].factor == pytest.approx(200 / 280)


def test_a_second_route_must_agree() -> None:
    claim = """
        - id: a
          where: "1"
          label: a
          printed: 134.2 MB
          compute: 8192**2*2*B
          second_route: {{compute: "{route}", how: by another way, within_percent: 1}}
    """
    good = judged_of(claim.format(route="roofline('gemv', m=8192, k=8192).traffic_bytes"))["a"]
    assert good.route_agrees
    assert good.as_recorded
    bad = judged_of(claim.format(route="150*MB"))["a"]
    assert bad.route_agrees is False
    assert not bad.as_recorded


def test_a_verdict_that_changed_is_seen() -> None:
    docket = docket_of("""
        - {id: a, where: "1", label: a, printed: 3.35 TB/s, compute: gpu("h100").bandwidth_bytes_per_s,
           verdict: differs, reason: it was wrong once}
    """)
    assert [each.claim.id for each in docket.changed] == ["a"]
    assert docket.failing(strict=False) == docket.changed


def test_strict_fails_on_what_does_not_hold_as_well() -> None:
    docket = docket_of(CHAIN)
    assert docket.failing(strict=False) == []
    assert [each.claim.id for each in docket.failing(strict=True)] == ["peak", "ridge", "twice"]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("4.1", ["a"]),
        ("4.10", ["b"]),
        ("4.8", ["c", "d"]),
        ("4", ["a", "b", "c", "d"]),
        ("Figure 4.1", ["e"]),
        ("table", ["a"]),
        ("a", ["a"]),
    ],
)
def test_where_a_claim_stands(where: str, ids: list[str]) -> None:
    places = {"a": "4.1, table", "b": "4.10", "c": "4.8", "d": "4.8.1, block", "e": "Figure 4.1"}
    file = file_of(
        "\n".join(
            f'- {{id: {name}, where: "{place}", label: l, printed: "1", compute: "1"}}'
            for name, place in places.items()
        )
    )
    assert [claim.id for claim in file.claims if at(where)(claim)] == ids


def test_the_derivation_has_the_numbers_in_it() -> None:
    docket = docket_of(CHAIN)
    lines = "\n".join(derivation(docket.court, docket.judged[2]))
    assert "right      100 TFLOP/s / 2 TB/s = 50 FLOP/byte" in lines
    assert "text       200 TFLOP/s / 2 TB/s = 100 FLOP/byte" in lines
    assert "starts at  peak (1)" in lines
    assert "printed / right = 2" in lines


def test_other_texts(tmp_path: Path) -> None:
    head = "text: other\ntitle: O\nclaims:\n"
    claim = '  - {id: far, where: "1", label: l, printed: 80-100 TB/s, verdict: not computable, reason: r}\n'
    (tmp_path / "other.yaml").write_text(head + claim)
    mine = HEAD.replace("inputs:", "texts: {other: other.yaml}\ninputs:") + (
        '  - {id: near, where: "1", label: l, printed: 33 TB/s, contradicts: other.far,\n'
        "     verdict: contradicts, reason: r}\n"
    )
    (tmp_path / "demo.yaml").write_text(mine)
    from memwall.claims.load import load

    file = load(str(tmp_path / "demo.yaml"))
    docket = judge([file], load, lambda claim: True)
    assert docket.judged[0].verdict == "contradicts"
    assert docket.judged[0].depends_on == ("other.far",)
