"""Every file of the hardware catalogue, checked by schema, by arithmetic and against hand-checked numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from memwall import yamlfile
from memwall.errors import FileError
from memwall.schema.base import Source, validate
from memwall.schema.hardware import Hardware, Matrix, Vector

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "hardware"
FILES = sorted(FOLDER.glob("*.yaml"))
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)

NAMES = [
    "p100", "v100", "v100-32gb", "v100-pcie", "v100-pcie-32gb", "t4",
    "a100", "a100-40gb", "a100-pcie", "a100-pcie-40gb", "a30", "a10", "a40", "rtx-3080", "rtx-3090",
    "rtx-a6000",
    "rtx-4070-ti", "rtx-4070-ti-super", "rtx-4090", "rtx-5000-ada", "rtx-6000-ada", "l4", "l40", "l40s",
    "h100", "h100-pcie", "h100-nvl", "h20", "h800", "h800-pcie", "h200", "h200-nvl", "gh200",
    "gh200-144gb",
    "b100", "b200", "gb200", "b300", "gb300", "rubin", "rtx-5090", "rtx-pro-6000", "gb10", "jetson-thor",
    "jetson-orin",
    "mi100", "mi210", "mi250", "mi250x", "mi250x-oam", "mi300x", "mi325x", "mi300a", "mi350x", "mi355x",
    "mi455x", "rx-7900-xtx",
    "gaudi2", "gaudi3", "max-1550", "arc-pro-b60",
    "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7", "trainium1", "inferentia2", "trainium2",
    "trainium3",
    "m1", "m1-max", "m1-ultra", "m2-max", "m2-ultra", "m3-max", "m3-ultra", "m4-max", "m5-max",
    "m5-ultra", "groq-lpu", "wse3",
]  # fmt: skip

# Datasheets round, and a pin rate has four digits: 1.5 % passes both and still tells 1980 from 1830 MHz.
TOLERANCE = 0.015


@cache
def device(path: Path) -> Hardware:
    return validate(Hardware, path.read_text(encoding="utf-8"), path.name)


def named(name: str) -> Hardware:
    return device(FOLDER / f"{name}.yaml")


@cache
def standard(kind: str) -> list[dict[str, Any]]:
    path = FOLDER / "standards" / f"{'memory' if kind == 'memory' else 'links'}.yaml"
    rows: list[dict[str, Any]] = yamlfile.parse(path.read_text(encoding="utf-8"), path.name)[kind]
    return rows


# --- the files themselves


def test_there_is_exactly_one_file_a_name() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert {path.stem for path in FILES} == set(NAMES)


@every_file
def test_it_validates_and_is_named_as_its_file(path: Path) -> None:
    assert device(path).name == path.stem


@every_file
def test_the_lookup_can_scan_its_text(path: Path) -> None:
    # Names are resolved without a YAML parser: name first, aliases on one line.
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == f"name: {path.stem}"
    aliases = [line for line in lines if line.startswith("aliases:")]
    assert len(aliases) == (1 if device(path).aliases else 0)
    assert all(re.fullmatch(r"aliases: \[[^\[\]]+\]", line) for line in aliases)


@every_file
def test_it_speaks_of_the_device_only(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/home/|/tmp/|TODO|FIXME", text)
    unquoted = re.sub(r'"[^"]*"', "", text)
    assert not re.search(r"\s[\d.]+[eE][+-]?\d", unquoted), "YAML readers take exponents for text"


def test_names_and_aliases_are_unique() -> None:
    owner: dict[str, str] = {}
    for path in FILES:
        for word in (device(path).name, *device(path).aliases):
            assert word not in owner, f"{word} is {owner.get(word)} and {path.stem}"
            owner[word] = path.stem


VENDORS = ("nvidia-", "amd-", "intel-", "google-", "aws-", "apple-", "geforce-", "tesla-", "instinct-")


@every_file
def test_aliases_are_plain_and_needed(path: Path) -> None:
    it = device(path)
    own = {f"-{size:g}gb" for size in (it.memory.capacity_gb, it.memory.capacity_gib) if size}
    for alias in it.aliases:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", alias)
        assert not alias.startswith(VENDORS)
        shorter = [alias.removesuffix(size) for size in own if alias.endswith(size)]
        # The look-up drops a device's own size, unless another device bears the short name.
        assert not any(short in {it.name, *it.aliases} for short in shorter), alias


@every_file
def test_each_number_has_a_source(path: Path) -> None:
    # The schema refuses a group without sources; this is the net under it, on the raw text.
    data = yamlfile.parse(path.read_text(encoding="utf-8"), path.name)
    for name, group in groups(data):
        assert group.get("source"), f"{name} has numbers and no source"
        assert sum("for" not in entry for entry in group["source"]) == 1, f"{name}: one entry covers the rest"


def groups(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in data.items():
        if key == "links":
            yield from ((f"links.{name}", link) for name, link in value.items())
        elif isinstance(value, dict):
            yield key, value
        elif key == "measured":
            yield from (("measured", row) for row in value)


def test_a_number_without_a_source_is_refused() -> None:
    text = (FOLDER / "h100.yaml").read_text(encoding="utf-8")
    where = text.index("  source:", text.index("\npower:"))
    with pytest.raises(FileError, match="source"):
        validate(Hardware, text[:where] + text[text.index("silicon:") :], "h100.yaml")


# --- arithmetic


def misses(it: Hardware) -> set[tuple[str, str | None]]:
    """The checks that a device fails: (check, dtype)."""
    found: set[tuple[str, str | None]] = set()
    memory = it.memory
    if memory.bus_width_bits and memory.pin_rate_gbit_per_s:
        theory = memory.bus_width_bits * memory.pin_rate_gbit_per_s / 8
        if off(theory, memory.bandwidth_driver_gb_per_s or memory.bandwidth_gb_per_s):
            found.add(("bandwidth", None))
    for check, group in (("matrix peak", it.matrix), ("vector peak", it.vector)):
        if group is None or it.unit is None or group.clock_mhz is None:
            continue
        for dtype, flop in (group.flop_per_clock_per_unit or {}).items():
            tflops = it.unit.count * flop * group.clock_mhz / 1e6
            if off(tflops, peaks(group)[dtype]):
                found.add((check, dtype))
    return found


def peaks(group: Matrix | Vector) -> dict[str, float]:
    return group.peak_dense_tflops if isinstance(group, Matrix) else group.peak_tflops


def off(value: float, published: float) -> bool:
    return abs(value / published - 1) > TOLERANCE


@every_file
def test_bandwidth_and_peaks_follow_from_width_rate_and_clock(path: Path) -> None:
    # Equality both ways: an unlisted miss fails, and so does an exception that is not needed.
    it = device(path)
    assert misses(it) == {(entry.check, entry.dtype) for entry in it.exceptions}


@every_file
def test_rates_are_given_for_published_peaks_only(path: Path) -> None:
    it = device(path)
    for group in (it.matrix, it.vector):
        if group is not None:
            assert set(group.flop_per_clock_per_unit or {}) <= set(peaks(group))


# Vendors cut these on purpose, or print them from an older clock.
SLOWER = {
    ("gaudi3", "bf16", "fp16"): "fp16 is the white paper's figure, a quarter of bf16",
    ("mi100", "fp16", "bf16"): "bf16 runs at half the fp16 rate",
    ("b300", "bf16", "int8"): "int8 is cut to 150 TOPS",
    ("gb300", "bf16", "int8"): "int8 is cut to 165 TOPS",
}
WIDE_TO_NARROW = [
    ("fp32", "tf32"), ("tf32", "bf16"), ("tf32", "fp16"), ("bf16", "fp16"), ("fp16", "bf16"), ("bf16", "fp8"),
    ("fp8", "fp6"), ("fp6", "fp4"), ("fp8", "fp4"), ("fp8", "nvfp4"), ("fp8", "mxfp4"), ("bf16", "int8"),
    ("int8", "int4"),
]  # fmt: skip


@every_file
def test_narrower_formats_are_not_slower(path: Path) -> None:
    it = device(path)
    matrix = it.matrix.peak_dense_tflops if it.matrix else {}
    for wide, narrow in WIDE_TO_NARROW:
        if wide in matrix and narrow in matrix:
            expected = (path.stem, wide, narrow) in SLOWER
            assert (matrix[narrow] < matrix[wide]) == expected, f"{wide} and {narrow}"


@every_file
def test_unsupported_and_peaks_do_not_meet(path: Path) -> None:
    matrix = device(path).matrix
    if matrix is not None:
        assert not set(matrix.unsupported or {}) & set(matrix.peak_dense_tflops)
        for reason in (matrix.unsupported or {}).values():  # 'V100 has no bf16 matrix path: REASON.'
            assert len(reason) < 90
            assert not reason.endswith(".")


SETTLED = {
    "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper", "CDNA", "CDNA 2", "CDNA 3", "CDNA 4", "RDNA 3",
}  # fmt: skip
DTYPES = {"tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "nvfp4", "mxfp4", "int8", "int4"}


@every_file
def test_of_known_architectures_each_dtype_is_a_peak_or_unsupported(path: Path) -> None:
    it = device(path)
    if it.architecture in SETTLED and it.segment != "embedded":  # Orin publishes two peaks only
        assert it.matrix is not None
        assert DTYPES - set(it.matrix.peak_dense_tflops) - set(it.matrix.unsupported or {}) == set()


@every_file
def test_clocks_allow_what_the_peaks_assume(path: Path) -> None:
    it = device(path)
    highest = it.clocks.max_mhz if it.clocks else None
    for group in (it.matrix, it.vector):
        if group and group.clock_mhz and highest:
            assert group.clock_mhz <= highest
    if it.matrix and it.matrix.clock_mhz and it.segment in ("consumer", "workstation"):
        assert highest, "bounds of these parts scale to the maximum clock"


@every_file
def test_measured_matrix_products_stay_below_the_bound(path: Path) -> None:
    it = device(path)
    if it.matrix is None:
        return
    scale = 1.0
    if it.segment in ("consumer", "workstation") and it.clocks and it.clocks.max_mhz and it.matrix.clock_mhz:
        scale = it.clocks.max_mhz / it.matrix.clock_mhz
    for row in it.measured or []:
        for key, value in row.values.items():
            found = re.match(r"matmul_(bf16|fp8)_", key)
            if found:
                assert value < scale * it.matrix.peak_dense_tflops[found[1]], key


@every_file
def test_fp16_accumulate_doubles(path: Path) -> None:
    matrix = device(path).matrix
    if matrix is not None and matrix.peak_dense_tflops_acc_fp16:
        for dtype, tflops in matrix.peak_dense_tflops_acc_fp16.items():
            assert tflops == pytest.approx(2 * matrix.peak_dense_tflops[dtype], rel=0.001)


@every_file
def test_driver_capacity_is_near_the_label(path: Path) -> None:
    # Labels are binary or decimal, less what ECC and firmware take: 0.98 to 1.08 times the decimal label.
    memory = device(path).memory
    if memory.capacity_driver_bytes and memory.capacity_gb:
        assert 0.98 < memory.capacity_driver_bytes / (memory.capacity_gb * 1e9) < 1.08


# --- standards


@every_file
def test_memory_agrees_with_its_standard(path: Path) -> None:
    memory = device(path).memory
    if memory.type in ("SRAM", "HBM"):
        assert memory.pin_rate_gbit_per_s is None
        return
    (row,) = [row for row in standard("memory") if memory.type in row["match"]]
    if memory.pin_rate_gbit_per_s:
        low, high = row["pin_rate_shipping_gbit_per_s"]
        assert low <= memory.pin_rate_gbit_per_s <= high
    width = memory.bus_width_physical_bits or memory.bus_width_bits
    if memory.stacks and width:
        assert memory.stacks * row["interface_bits"] == width


@every_file
def test_links_agree_with_their_standard(path: Path) -> None:
    for name, link in (device(path).links or {}).items():
        match = {"link": name, "generation": link.generation}
        rows = [row for row in standard("links") if row["match"] == match]
        if name in ("nvlink", "pcie") and link.generation is not None:
            (row,) = rows
            if name == "nvlink" and link.links and link.gb_per_s_per_direction:
                assert link.gb_per_s_per_direction == link.links * row["gb_per_s_per_link"]
            if name == "pcie":
                lanes = 8 if link.form == "x8" else 16
                assert link.gb_per_s_per_direction == row["gb_per_s_per_direction"] * lanes / 16


def test_standards_multiply_out_and_have_sources() -> None:
    for row in standard("memory"):
        theory = row["interface_bits"] * row["pin_rate_gbit_per_s"] / 8
        assert row["gb_per_s"] == pytest.approx(theory), row["name"]
    for row in standard("links"):
        if "links" in row:
            assert row["gb_per_s_per_direction"] == row["links"] * row["gb_per_s_per_link"], row["name"]
    for row in (*standard("memory"), *standard("links")):
        sources = [Source.model_validate(entry) for entry in row["source"]]
        assert sum(source.keys is None for source in sources) == 1, row["name"]
        assert all(key in row for source in sources for key in source.keys or ()), row["name"]


# --- numbers checked by hand

ANCHORS: list[tuple[str, str, float]] = [
    ("v100", "matrix.peak_dense_tflops.fp16", 125),  # 80 SM x 1024 x 1530 MHz = 125.3, printed as 125
    ("v100-pcie", "matrix.peak_dense_tflops.fp16", 112),  # the PCIe card runs at 1380 MHz
    ("v100", "memory.bandwidth_driver_gb_per_s", 898.048),  # 877 MHz x 2 x 512 bytes, sold as 900
    ("t4", "matrix.peak_dense_tflops.fp16", 65),  # 40 SM x 1024 x 1590 MHz
    ("t4", "memory.bandwidth_gb_per_s", 320),  # 256 bits x 10 Gbit/s; the datasheet's 300 is not the clock's
    ("a100", "matrix.peak_dense_tflops.bf16", 312),  # dense; 624 is sparse
    ("a100", "memory.bandwidth_driver_gb_per_s", 2039.04),  # 1593 MHz x 2 x 640 bytes
    ("a100-40gb", "memory.bandwidth_driver_gb_per_s", 1555.2),  # 1215 MHz x 2 x 640 bytes: HBM2, not HBM2e
    ("a100-pcie", "memory.bandwidth_gb_per_s", 1935),  # not the 2039 of the SXM module
    ("rtx-3090", "matrix.peak_dense_tflops.bf16", 71),  # fp32 accumulate; 142 is with fp16 accumulate
    ("rtx-3090", "clocks.max_mhz", 2100),  # nvidia-smi; 78 TFLOPS were measured, above 71
    ("rtx-4090", "matrix.peak_dense_tflops.bf16", 165.2),  # fp32 accumulate; 330.3 is with fp16 accumulate
    ("rtx-4090", "clocks.max_mhz", 3105),  # nvidia-smi; 178.8 TFLOPS were measured, above 165.2
    ("rtx-5090", "matrix.peak_dense_tflops.fp4", 1676),  # 3352 is sparse
    ("l4", "matrix.peak_dense_tflops.bf16", 121),  # 58 SM x 1024 x 2040 MHz; only 242, sparse, is printed
    ("l40", "matrix.peak_dense_tflops.bf16", 181),  # half rate, unlike the L40S
    ("l40s", "matrix.peak_dense_tflops.bf16", 362.05),  # full rate; 733 is sparse
    ("h100", "matrix.peak_dense_tflops.bf16", 989.4),  # 132 SM x 4096 x 1830 MHz, not 1980
    ("h100", "memory.bandwidth_driver_gb_per_s", 3352.32),  # 2619 MHz x 2 x 640 bytes
    ("h100-pcie", "matrix.peak_dense_tflops.bf16", 756),  # 114 SM x 4096 x 1620 MHz
    ("h200", "memory.bandwidth_driver_gb_per_s", 4814.3),  # 3201 MHz x 2 x 752 bytes
    ("h200", "memory.bus_width_bits", 6016),  # 47 of 48 channels of 128 bits, read on the hardware
    ("h20", "matrix.peak_dense_tflops.bf16", 148),  # dense, for all the look of a halved figure
    ("b200", "matrix.peak_dense_tflops.bf16", 2250),  # HGX: 148 SM x 8192 x 1856 MHz
    ("b200", "matrix.peak_dense_tflops.nvfp4", 9000),  # HGX; 10000 is the GB200's
    ("b200", "memory.bandwidth_driver_gb_per_s", 7672.32),  # 7680 bits, corrected from 8192
    ("gb200", "matrix.peak_dense_tflops.bf16", 2500),  # one GPU: 152 SM x 8192 x 2008 MHz
    ("gb300", "matrix.peak_dense_tflops.nvfp4", 15000),  # dense; sparse is 20000, four thirds
    ("gb300", "memory.bandwidth_driver_gb_per_s", 7928.064),  # 3996 MHz x 2 x 992 bytes; never 12 TB/s
    ("gb300", "matrix.peak_dense_tflops.int8", 165),  # cut; tables that say 5000 carry the GB200's over
    ("gb300", "special.exp_per_clock_per_unit", 32),  # Blackwell Ultra doubles exp
    ("rubin", "matrix.peak_dense_tflops.nvfp4", 35000),  # 50000 is with adaptive compression
    ("mi100", "matrix.peak_dense_tflops.bf16", 92.3),  # half of fp16
    ("mi250x", "matrix.peak_dense_tflops.bf16", 191.5),  # one die; 383 is the module
    ("mi300x", "matrix.peak_dense_tflops.bf16", 1307.4),  # 304 CU x 2048 x 2100 MHz; 2615 is sparse
    ("mi300x", "memory.bandwidth_gb_per_s", 5300),  # some tables carry 6810, which no part has
    ("mi355x", "matrix.peak_dense_tflops.fp8", 5033.2),  # dense; 10100 is sparse
    ("mi455x", "memory.bandwidth_gb_per_s", 23300),  # the page of 2026; 19.6 TB/s was announced in 2025
    ("gaudi3", "matrix.peak_dense_tflops.bf16", 1678),  # 8 engines x 131072 x 1600 MHz; 1835 needs 1750 MHz
    ("tpu-v5p", "memory.bandwidth_gb_per_s", 2765),  # as documented; a library lists 2460
    ("trainium1", "memory.bandwidth_gb_per_s", 880.5),  # 820 GiB/s
]


@pytest.mark.parametrize(("name", "key", "value"), ANCHORS, ids=[f"{name}-{key}" for name, key, _ in ANCHORS])
def test_hand_checked(name: str, key: str, value: float) -> None:
    found: Any = named(name)
    for step in key.split("."):
        found = found[step] if isinstance(found, dict) else getattr(found, step)
    assert found == value


SPARSE_HEADLINES = [  # figures that are often copied as if dense
    ("h100", "bf16", 1979), ("h100", "fp8", 3958), ("h100", "tf32", 989), ("h200", "bf16", 1979),
    ("h100-pcie", "bf16", 1513), ("h100-nvl", "bf16", 1671), ("h200-nvl", "fp8", 3341),
    ("l4", "fp8", 485), ("l40s", "fp8", 1466), ("a100", "bf16", 624), ("b200", "fp4", 18000),
    ("gb200", "bf16", 5000), ("rtx-5090", "fp4", 3352), ("rtx-4090", "fp8", 660.6),
    ("gb10", "fp4", 1000), ("jetson-thor", "fp4", 2070), ("jetson-orin", "int8", 170),
    ("mi300x", "bf16", 2615), ("mi355x", "fp8", 10066),
    ("rtx-6000-ada", "fp8", 1457), ("rtx-pro-6000", "fp4", 4030), ("gb300", "nvfp4", 20000),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "sparse"), SPARSE_HEADLINES)
def test_sparse_headlines_are_not_the_dense_peak(name: str, dtype: str, sparse: float) -> None:
    matrix = named(name).matrix
    assert matrix is not None
    factor = (matrix.sparse_multiplier_by_dtype or {}).get(dtype, matrix.sparse_multiplier)
    assert factor is not None
    assert matrix.peak_dense_tflops[dtype] * factor == pytest.approx(sparse, rel=0.005)


def test_parts_without_2_4_sparsity_claim_none() -> None:
    for name in ("v100", "v100-pcie", "t4", "mi100", "mi210", "mi250", "mi250x", "gaudi3", "trainium2"):
        matrix = named(name).matrix
        assert matrix is not None
        assert matrix.sparse_multiplier is None


# --- the field guide


def keys(model: type[BaseModel]) -> set[str]:
    found: set[str] = set()
    for name, field in model.model_fields.items():
        found.add(field.alias or name)
        for inner in inner_models(field.annotation):
            found |= keys(inner)
    return found


def inner_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from inner_models(argument)


def test_the_readme_names_every_key_and_its_example_validates() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[a-z0-9_]+", readme))
    assert keys(Hardware) - words == set()
    (example,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert misses(validate(Hardware, example, "README.md")) == set()
