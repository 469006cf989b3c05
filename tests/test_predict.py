"""memwall predict: one row in, one row out, in order; the others still come out when one cannot."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path

import pytest

import memwall
from memwall.cli import run
from memwall.reports.predict import ADDED, predict_cases, read_csv

TABLE = """id,gpu,op,dtype,m,n,k,rows,cols,batch,heads,kv_heads,seq_q,seq_kv,head_dim,causal,impl,kernel
a,,gemm,bf16,4096,4096,4096,,,,,,,,,,,
b,h100,rmsnorm,bf16,,,,4096,8192,,,,,,,,,
c,,attention,bf16,,,,,,8,32,8,1,4096,128,,,torch_flow|trtllm_1.3.0
a,,attention,fp16,,,,,,1,32,32,2048,2048,64,1,fa2,
d,,gemm,bf16,4096,4096,,,,,,,,,,,,
e,,conv,bf16,4096,4096,4096,,,,,,,,,,,
f,v100,gemm,bf16,64,64,64,,,,,,,,,,,
g,,gemv,bf16,1,8192,8192,,,,,,,,,,,
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.csv"
    path.write_text(TABLE)
    return path


def predicted(path: Path, *args: str) -> tuple[int, list[dict[str, str]]]:
    out = path.with_suffix(".out.csv")
    code = run(["predict", str(path), "-o", str(out), *args])
    return code, list(csv.DictReader(io.StringIO(out.read_text())))


def test_one_row_in_one_row_out_in_order(cases: Path) -> None:
    code, rows = predicted(cases, "--gpu", "h200")
    assert code == 1  # three rows have an error
    assert [row["id"] for row in rows] == ["a", "b", "c", "a", "d", "e", "f", "g"]
    assert [bool(row["error"]) for row in rows] == [False, False, False, False, True, True, True, False]
    assert "gemm needs --k" in rows[4]["error"]
    assert "unknown op 'conv'" in rows[5]["error"]
    assert "no bf16 matrix path" in rows[6]["error"]
    assert list(rows[0])[-len(ADDED) :] == list(ADDED)


def test_a_row_says_what_roofline_says(cases: Path) -> None:
    _, rows = predicted(cases, "--gpu", "h200")
    gemm = memwall.roofline("gemm", gpu="h200", m=4096, n=4096, k=4096)
    assert gemm.estimate is not None
    assert int(rows[0]["flops"]) == 2 * 4096**3
    assert int(rows[0]["read_bytes"]) == 2 * 2 * 4096**2
    assert int(rows[0]["written_bytes"]) == 2 * 4096**2
    assert float(rows[0]["bound_us"]) == pytest.approx(gemm.bound_time_s * 1e6, rel=1e-5)
    assert float(rows[0]["estimate_us"]) == pytest.approx(gemm.estimate.time_s * 1e6, rel=1e-5)
    assert rows[0]["regime"] == "compute-bound"
    assert rows[0]["basis"] == "calibrated: h200"
    fa2 = memwall.roofline("attention", gpu="h200", dtype="fp16", heads=32, head_dim=64, seq=2048, impl="fa2")
    assert fa2.estimate is not None
    assert float(rows[3]["estimate_us"]) == pytest.approx(fa2.estimate.time_s * 1e6, rel=1e-5)


def test_a_row_s_gpu_beats_the_option(cases: Path) -> None:
    _, rows = predicted(cases, "--gpu", "h200")
    assert (rows[0]["basis"], rows[1]["basis"]) == ("calibrated: h200", "architecture default")
    assert memwall.roofline("rmsnorm", gpu="h100", rows=4096, cols=8192).bound_time_s * 1e6 == pytest.approx(
        float(rows[1]["bound_us"]), rel=1e-5
    )


def test_a_gemv_is_a_product_of_one_row(cases: Path) -> None:
    _, rows = predicted(cases, "--gpu", "h200")
    assert int(rows[7]["flops"]) == 2 * 8192 * 8192


def test_every_bound_is_below_its_estimate(cases: Path) -> None:
    _, rows = predicted(cases, "--gpu", "h200")
    assert all(float(row["bound_us"]) <= float(row["estimate_us"]) for row in rows if not row["error"])


def test_json_lines_in_and_out(tmp_path: Path) -> None:
    path, out = tmp_path / "cases.jsonl", tmp_path / "out.jsonl"
    records = [
        {"id": 1, "op": "softmax", "rows": 4096, "cols": 4096, "dtype": "bf16", "warm": False},
        {"id": 2, "op": "mla", "batch": 8, "heads": 128, "seq_kv": 8192, "kv_dtype": "fp8", "dtype": "bf16"},
        {"id": 3, "op": "softmax", "rows": None, "cols": 4096},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    assert run(["predict", str(path), "--gpu", "b200", "-o", str(out)]) == 1
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["bound_us"] <= rows[0]["estimate_us"]
    assert rows[1]["read_bytes"] == 8 * 8192 * 576 + 8 * 128 * 576 * 2
    assert rows[2]["estimate_us"] is None
    assert "softmax needs --rows" in rows[2]["error"]


def test_the_published_vocabulary_is_read(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(
        "gpu,phase,dtype,kv_dtype,batch,q_len,kv_len,n_q_heads,n_kv_heads,head_dim,head_dim_v,causal,"
        "latency_us,footprint_in_L2\n"
        "H100-SXM5-80GB,decode,bf16,fp8,8,1,1024,32,8,128,128,1,99,False\n"
        "H100-SXM5-80GB,decode,bf16,fp8,8,1,1024,32,8,128,128,1,99,True\n"
        "B200-SXM,prefill_mla,bf16,bf16,1,4096,4096,128,128,192,128,1,99,False\n"
        "A100-PCIe-80GB,decode_mla_absorbed,bf16,bf16,2,1,4096,16,1,576,512,1,99,False\n"
    )
    code, rows = predicted(path)
    assert code == 0
    assert int(rows[0]["read_bytes"]) == 2 * 8 * 8 * 1024 * 128 + 8 * 32 * 128 * 2
    assert float(rows[1]["bound_us"]) < float(rows[0]["bound_us"])
    assert int(rows[2]["flops"]) == 2 * 128 * (4096 * 4097 // 2) * (192 + 128)


def test_published_names_of_operators_are_known(tmp_path: Path) -> None:
    path = tmp_path / "ops.csv"
    names = ["elementwise_add", "elementwise_relu", "softmax_fwd", "rms_norm_fwd", "act_mul", "residual_add"]
    path.write_text("gpu,op,dtype,rows,cols\n" + "".join(f"a100,{name},fp32,4096,4096\n" for name in names))
    code, rows = predicted(path)
    assert code == 0
    tensors = [3, 2, 2, 2, 3, 3]
    for row, count in zip(rows, tensors, strict=True):
        moved = int(row["read_bytes"]) + int(row["written_bytes"])
        assert moved == pytest.approx(count * 4096 * 4096 * 4, rel=1e-3)


def test_measured_columns_are_not_seen(tmp_path: Path) -> None:
    path = tmp_path / "with-times.csv"
    path.write_text("gpu,op,m,n,k,latency_us,flops\nh100,gemm,64,64,64,5,1\nh100,gemm,64,64,64,5000,2\n")
    _, rows = predicted(path)
    assert rows[0]["estimate_us"] == rows[1]["estimate_us"]
    assert [row["given_flops"] for row in rows] == ["1", "2"]  # the table's own
    assert rows[0]["flops"] == str(2 * 64**3)


def test_a_table_s_own_columns_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "counted.csv"
    path.write_text("gpu,op,m,n,k,dram_read_bytes,l2_bytes\nh200,gemm,64,64,64,11,12\nh200,gemm,,,,13,14\n")
    once = predict_cases(read_csv(path.read_text(), "counted.csv"))
    first, second = once.records()
    assert (first["given_dram_read_bytes"], first["given_l2_bytes"]) == ("11", "12")
    assert first["dram_read_bytes"] >= first["read_bytes"]
    assert second["given_dram_read_bytes"] == "13"
    assert second["dram_read_bytes"] is None
    assert second["error"]
    _, rows = predicted(path)
    again = path.with_suffix(".out.csv")
    _, twice = predicted(again)  # a predicted table predicted again: nothing is lost
    assert twice[0]["given_given_dram_read_bytes"] == rows[0]["dram_read_bytes"]
    assert twice[0]["given_dram_read_bytes"] == "11"
    assert twice[0]["flops"] == twice[0]["given_flops"] == rows[0]["flops"]


def test_errors_are_said_to_a_thousandth() -> None:
    text = "gpu,op,rows,cols,impl\nh200,silu_mul,4096,4096,eager\nh200,attention,,,\n"
    (first, _) = predict_cases(read_csv(text, "cases.csv")).records()
    assert first["error_p50"] == round(first["error_p50"], 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a header"),
        ("op,m,n\ngemm,1,2,3,4\n", "bad.csv:2: 5 cells under 3 columns"),
        ("op,m,n,M\ngemm,1,2,3\n", "two columns are called m"),
        ('{"op": \n[1]\n', "bad.csv:1: not a JSON object"),
    ],
)
def test_a_malformed_table_is_refused_by_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert run(["predict", str(path)]) == 3
    assert message in capsys.readouterr().err


def test_a_missing_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", "nowhere.csv"]) == 3
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize("cell", ["0", "-3", "2.5", "many", "nan"])
def test_a_dimension_that_cannot_be_is_the_row_s_error(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text(f"gpu,op,m,n,k\nh100,gemm,{cell},64,64\nh100,gemm,64,64,64\n")
    code, rows = predicted(path)
    assert code == 1
    assert "m must be a whole number" in rows[0]["error"]
    assert rows[1]["estimate_us"]


def test_twenty_thousand_rows_take_a_few_seconds(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    rows = [f"h100,gemm,bf16,{1 + i % 4096},{64 + i},{64 + i // 2}" for i in range(20000)]
    path.write_text("\n".join(["gpu,op,dtype,m,n,k", *rows]) + "\n")
    started = time.process_time()
    code, answers = predicted(path)
    assert code == 0
    assert len(answers) == 20000
    assert time.process_time() - started < 10  # it takes one; 100,000 rows take five


def test_a_collective_says_what_its_command_says(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text(
        "gpu,op,m,n,k,num_gpus,message_bytes\n"
        "h100,all-reduce,,,,8,67108864\nh100,gemm,64,64,64,,\nl40s,alltoall,,,,4,1048576\n"
        "h100,all_gather,,,,16,1024\nm1,all_reduce,,,,2,1024\n,all_reduce,,,,2,\n"
    )
    code, rows = predicted(path, "--gpu", "h200")
    assert code == 1
    reduce = memwall.collective("all_reduce", size_bytes=67108864, gpus=8, gpu="h100")
    assert reduce.estimate_time_s is not None
    assert float(rows[0]["bound_us"]) == pytest.approx(reduce.bound_time_s * 1e6, rel=1e-5)
    assert float(rows[0]["estimate_us"]) == pytest.approx(reduce.estimate_time_s * 1e6, rel=1e-5)
    assert rows[0]["regime"] == rows[2]["regime"] == "link-bound"
    assert [bool(row["error"]) for row in rows] == [False, False, False, True, True, True]


def test_the_bytes_that_kernels_move_are_modelled() -> None:
    # an H200's counter: 150e6 bytes read from main memory by this product, 67.1e6 compulsory
    text = "gpu,op,dtype,m,n,k\nh200,gemm,bf16,4096,4096,4096\nh100,copy,bf16,,,\n"
    first, second = predict_cases(read_csv(text, "cases.csv")).records()
    assert first["dram_read_bytes"] == pytest.approx(150e6, rel=0.2)
    assert first["dram_read_bytes"] >= first["read_bytes"]
    assert first["l2_bytes"] > first["dram_read_bytes"]
    assert second["error"]
    assert second["dram_read_bytes"] is None


def test_attention_s_bytes_follow_the_implementation() -> None:
    text = "gpu,op,batch,heads,head_dim,seq,causal,impl\n" + "".join(
        f"h200,attention,1,32,128,4096,0,{impl}\n" for impl in ("standard", "fa2", "fa3")
    )
    standard, fa2, fa3 = predict_cases(read_csv(text, "cases.csv")).records()
    assert standard["dram_read_bytes"] > 10 * fa2["dram_read_bytes"]
    assert fa2["dram_read_bytes"] == pytest.approx(105e6, rel=0.05)  # counted
    assert fa3["dram_read_bytes"] == pytest.approx(101e6, rel=0.05)  # counted


def test_a_misspelt_implementation_is_the_row_s_error(tmp_path: Path) -> None:
    path = tmp_path / "impl.csv"
    path.write_text(
        "gpu,op,heads,head_dim,seq,impl,rows,cols,library\nh200,attention,8,128,1024,zzz,,,\n"
        "h200,attention,8,128,1024,fa3,,,\nh200,attention,8,128,1024,cudnn,,,\n"
        "h200,copy,,,,eager,64,64,\nh200,copy,,,,,64,64,somebody's\n"
    )
    code, rows = predicted(path)
    assert code == 1
    assert "unknown impl 'zzz'" in rows[0]["error"]
    assert "eager, fa1, fa2, fa3" in rows[0]["error"]
    assert not any(row["error"] for row in rows[1:])


def test_a_broken_line_costs_its_own_row(tmp_path: Path) -> None:
    path, out = tmp_path / "cases.jsonl", tmp_path / "out.jsonl"
    good = '{"id": 1, "op": "softmax", "rows": 64, "cols": 64}'
    path.write_text(f'{good}\n{{"op": "softmax", "rows": \n\n[1]\n{good}\n')
    assert run(["predict", str(path), "--gpu", "h200", "-o", str(out)]) == 1
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [bool(row["error"]) for row in rows] == [False, True, True, False]
    assert "cases.jsonl:2: not a JSON object" in rows[1]["error"]
    assert "cases.jsonl:4: not a JSON object" in rows[2]["error"]
    assert rows[0] == rows[3]


GOOD = "gpu,op,rows,cols\nh200,copy,64,64\n"


def test_a_row_with_a_cell_too_many_costs_itself(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("id,gpu,op,rows,cols\n1,h200,copy,64,64\n2,h200,copy,64,64,9\n3,h200,copy,64,64\n")
    code, rows = predicted(path)
    assert code == 1
    assert [bool(row["error"]) for row in rows] == [False, True, False]
    assert "one.csv:3: 6 cells under 5 columns" in rows[1]["error"]
    assert rows[1]["id"] == "2"


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        "GPU,Op,ROWS,Cols\nh200,copy,64,64\n",
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
    ],
    ids=["semicolons", "tabs", "capitals", "byte order mark", "carriage returns"],
)
def test_tables_of_spreadsheets_are_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_bytes(text.encode())
    code, rows = predicted(path)
    assert code == 0
    assert rows[0]["estimate_us"]
    assert rows[0]["gpu"] == "h200"


def test_json_lines_may_have_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "cases.txt"
    path.write_bytes(b'\xef\xbb\xbf{"gpu": "h200", "op": "copy", "rows": 64, "cols": 64}\n')
    assert run(["predict", str(path), "-o", str(tmp_path / "out.csv")]) == 0


def test_nothing_to_predict_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.jsonl"
    path.write_text("\n")
    assert run(["predict", str(path)]) == 3
    assert "none.jsonl: no JSON object in it" in capsys.readouterr().err
    path = tmp_path / "none.csv"
    path.write_text("op,m,n,k\n")
    assert run(["predict", str(path)]) == 0
    assert "none.csv: no rows under its header" in capsys.readouterr().err


def test_a_misspelt_gpu_of_the_command_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.csv"
    path.write_text("op,m,n,k,time_us\ngemm,64,64,64,9\n")
    for line in (["predict", str(path)], ["accuracy", "--data", str(path)]):
        assert run([*line, "--gpu", "h20o"]) == 2
        said = capsys.readouterr()
        assert "unknown GPU 'h20o'" in said.err
        assert "Did you mean h20 or h200" in said.err
        assert not said.out


def test_fa1_has_a_bound_and_the_reason_why_no_estimate(tmp_path: Path) -> None:
    path = tmp_path / "fa1.csv"
    path.write_text(
        "gpu,op,heads,head_dim,seq,impl,kernel\n"
        "h100,attention,32,128,4096,fa1,\nh100,attention,32,128,4096,,fa1\nh100,attention,32,128,4096,fa2,\n"
    )
    code, rows = predicted(path)
    assert code == 1
    for row in rows[:2]:
        assert "no estimate: no measured FA1 kernel" in row["error"]
        assert float(row["bound_us"]) > 0
        assert not row["estimate_us"]
        assert not row["basis"]
        assert not row["error_p90"]
    assert rows[2]["estimate_us"]
    assert not rows[2]["error"]


def test_what_does_not_fit_in_l2_is_not_there(tmp_path: Path) -> None:
    """8.6 GB are read from memory, warm or not; 8 MB are not."""
    path = tmp_path / "warm.csv"
    sizes = [(262144, 16384), (1024, 4096)]
    lines = [f"h100,copy,bf16,{rows},{cols},{warm}" for rows, cols in sizes for warm in (0, 1)]
    path.write_text("\n".join(["gpu,op,dtype,rows,cols,warm", *lines]) + "\n")
    code, rows = predicted(path)
    assert code == 0
    bounds = [float(row["bound_us"]) for row in rows]
    assert bounds[0] == bounds[1]
    assert bounds[2] > 2 * bounds[3]


def test_a_gemv_is_written_both_ways(tmp_path: Path) -> None:
    """As the operator's own m, k and batch, or as data sets have it: a product of one row."""
    path = tmp_path / "gemv.csv"
    path.write_text("gpu,op,dtype,m,n,k,batch\nh100,gemv,bf16,8192,,4096,1\nh100,gemv,bf16,1,8192,4096,\n")
    code, rows = predicted(path)
    assert code == 0
    assert rows[0]["estimate_us"] == rows[1]["estimate_us"]


def test_every_dimension_of_every_operator_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "combine.csv"
    path.write_text("gpu,op,dtype,rows,cols,top_k\nh100,moe_combine,bf16,128,4096,4\n")
    code, rows = predicted(path)
    assert (code, rows[0]["error"]) == (0, "")
