"""The metrics that are understood, under the names that each profiler gives them.

Shares are fractions of one. Source of the names: Nsight Compute 2025.3, `ncu --query-metrics` and its
sections (read from exports of an H200); ROCm Compute Profiler documentation, "Performance model".
"""

from __future__ import annotations

from typing import NamedTuple

SECTOR_BYTES = 32


class Metric(NamedTuple):
    """One quantity, and where it is found."""

    field: str
    raw: tuple[str, ...] = ()
    """Columns of ncu's raw page; the first that is there counts."""
    details: tuple[str, ...] = ()
    """Names on ncu's details page, `Section/Metric` where a name occurs in several."""
    rocprof: tuple[str, ...] = ()
    """Names in rocprof-compute's tables."""
    share: bool = False
    """Whether it is a per cent."""
    scale: float = 1
    flag: str = ""
    """What makes ncu collect it."""


METRICS = (
    Metric(
        "time_s",
        ("gpu__time_duration.sum", "gpu__time_duration.avg"),
        ("Duration",),
        ("Kernel Time",),
        flag="--section SpeedOfLight",
    ),
    Metric("dram_read_bytes", ("dram__bytes_read.sum",), flag="--metrics dram__bytes_read.sum"),
    Metric("dram_written_bytes", ("dram__bytes_write.sum",), flag="--metrics dram__bytes_write.sum"),
    Metric(
        "dram_bytes_per_s",
        ("dram__bytes.sum.per_second",),
        ("Memory Workload Analysis/Memory Throughput",),
        ("HBM Bandwidth",),
        flag="--section MemoryWorkloadAnalysis",
    ),
    Metric(
        "dram_share",
        (
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        ),
        ("DRAM Throughput",),
        share=True,
        flag="--section SpeedOfLight",
    ),
    Metric(
        "sm_share",
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
        ("Compute (SM) Throughput",),
        share=True,
        flag="--section SpeedOfLight",
    ),
    Metric(
        "tensor_share",
        ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",),
        rocprof=("MFMA Util", "MFMA Utilization"),
        share=True,
        flag="--section ComputeWorkloadAnalysis",
    ),
    Metric(
        "l2_hit_share",
        ("lts__t_sector_hit_rate.pct",),
        ("L2 Hit Rate",),
        ("L2 Cache Hit Rate", "L2 Hit Rate"),
        share=True,
        flag="--section MemoryWorkloadAnalysis",
    ),
    Metric("l2_counter_bytes", ("lts__t_bytes.sum",), flag="--metrics lts__t_bytes.sum"),
    Metric("l2_sectors", ("lts__t_sectors.sum",)),
    Metric(
        "shared_wavefronts",
        ("memory_l1_wavefronts_shared", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
        flag="--section SourceCounters",
    ),
    Metric(
        "shared_excess",
        (
            "derived__memory_l1_wavefronts_shared_excessive",
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        ),
        flag="--section SourceCounters",
    ),
    Metric("conflicts_an_access", rocprof=("LDS Bank Conflicts/Access", "Bank Conflicts/Access")),
    Metric(
        "spill_requests",
        ("derived__local_spilling_requests", "smsp__sass_inst_executed_op_local_ld.sum"),
        ("Local Memory Spilling Requests",),
        ("VGPR Spills", "Spill/Stack Read Instr"),
        flag="--section MemoryWorkloadAnalysis",
    ),
    Metric("global_sectors", ("memory_l2_theoretical_sectors_global",), flag="--section SourceCounters"),
    Metric(
        "global_excess",
        ("derived__memory_l2_theoretical_sectors_global_excessive",),
        flag="--section SourceCounters",
    ),
    Metric("coalescing_share", rocprof=("Coalescing", "Buffer Coalescing"), share=True),
    Metric(
        "occupancy_share",
        ("sm__warps_active.avg.pct_of_peak_sustained_active",),
        ("Achieved Occupancy",),
        ("Wavefront Occupancy", "Wave Occupancy"),
        share=True,
        flag="--section Occupancy",
    ),
    Metric(
        "theoretical_occupancy_share",
        ("sm__maximum_warps_per_active_cycle_pct",),
        ("Theoretical Occupancy",),
        share=True,
        flag="--section Occupancy",
    ),
    Metric(
        "registers",
        ("launch__registers_per_thread",),
        ("Registers Per Thread",),
        ("VGPRs",),
        flag="--section LaunchStats",
    ),
    Metric("cycles", ("smsp__cycles_elapsed.max", "smsp__cycles_elapsed.avg"), ("Elapsed Cycles",)),
    Metric("fma_a_cycle", ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed",)),
    Metric("add_a_cycle", ("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed",)),
    Metric("mul_a_cycle", ("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed",)),
    Metric("fma_count", ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",)),
    Metric("add_count", ("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",)),
    Metric("mul_count", ("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",)),
)

RULES = {
    "UncoalescedGlobalAccess": ("global_excess", "global_sectors"),
    "UncoalescedSharedAccess": ("shared_excess", "shared_wavefronts"),
}
"""Rules of the details page whose sentence has two counts: so many excessive of a total of so many."""

TENSOR_FLOPS = "sm__ops_path_tensor_src_"
"""Columns of this beginning and `.sum` count the matrix unit's operations by format: _bf16_dst_fp32.sum."""

DEVICE = ("device__attribute_display_name",)
"""The column that names the device."""


def tensor_columns(names: list[str]) -> list[str]:
    """The raw page's counts of matrix operations, each format once; parts of them have another name."""
    return [name for name in names if name.startswith(TENSOR_FLOPS) and name.endswith(".sum")]
