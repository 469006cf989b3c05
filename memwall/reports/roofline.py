"""The roofline of one operator, or of any FLOPs and bytes, on one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memwall.bound import Bound, bound, kernel_bounds
from memwall.dtypes import find as find_dtype
from memwall.errors import NotAvailable, UsageError, shown
from memwall.estimate.estimate import Estimate
from memwall.hardware import Device
from memwall.ops import registry
from memwall.program import Program, Work
from memwall.reports.arguments import checked
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU, Case, DeviceLike, Formats, device_of
from memwall.reports.estimates import estimate_case
from memwall.reports.notebook import Report
from memwall.units import LARGEST_AMOUNT

if TYPE_CHECKING:
    from memwall.reports.steps import Step


@dataclass(frozen=True, slots=True, repr=False)
class RooflineReport(Report):
    """What one kernel must cost on one device."""

    device: Device
    op: str
    formats: Formats
    bound: Bound
    kernels: tuple[tuple[str, Bound], ...]
    """Each kernel by itself."""
    case: Case | None
    """None when FLOPs and bytes were given instead of an operator."""
    defaults: tuple[str, ...]
    """What the user did not say and was assumed."""
    estimate: Estimate | None = None
    """The time that a good kernel takes; None for FLOPs and bytes, for what nobody has measured (fa1),
    or when only the bound is wanted."""
    bound_only: bool = False
    """Whether only the bound is wanted."""

    @property
    def kernels_bound_time_s(self) -> float:
        """The sum of the kernels' own bounds: the program's if nothing overlaps [s]."""
        return sum(each.time_s for _, each in self.kernels)

    @property
    def shape(self) -> Mapping[str, int]:
        """The operator's dimensions; empty for FLOPs and bytes."""
        return self.case.dims if self.case else {}

    @property
    def program(self) -> Program | None:
        """The operator's kernels and tensors."""
        return self.case.program if self.case else None

    @property
    def footprint_bytes(self) -> int:
        """Bytes of every tensor of the operator, all in memory at once; 0 for FLOPs and bytes."""
        program = self.program
        if program is None:
            return 0
        return int(sum(tensor.bytes for tensor in (*program.inputs, *program.produced.values())))

    @property
    def advice(self) -> tuple[Step, ...]:
        """What to do next in this regime, in order, each with its number where there is one."""
        from memwall.reports.advice import next_steps

        return next_steps(self)

    # The numbers people ask for, without going through `bound`.

    @property
    def flops(self) -> float:
        """FLOPs of the operator's kind: see the operator's docstring."""
        return self.bound.work.flops  # type: ignore[no-any-return]

    @property
    def traffic_bytes(self) -> int:
        """Compulsory bytes read and written."""
        return self.bound.work.traffic_bytes  # type: ignore[no-any-return]

    @property
    def bound_time_s(self) -> float:
        """The least time it can take [s]."""
        return self.bound.time_s

    @property
    def estimate_time_s(self) -> float | None:
        """The time that a good kernel takes [s]; None where there is no estimate."""
        return float(self.estimate.time_s) if self.estimate else None

    @property
    def regime(self) -> str:
        """memory-bound or compute-bound."""
        return self.bound.regime


@checked
def roofline(
    op: str | None = None,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    dtype: str = DEFAULT_DTYPE,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
    out_dtype: str | None = None,
    causal: bool | None = None,
    impl: str | None = None,
    flops: float | None = None,
    bytes: float | None = None,  # noqa: A002 - the word people use, as in --bytes
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
    library: str | None = None,
    calibration: str | None = None,
    bound_only: bool = False,
    **shape: int | None,
) -> RooflineReport:
    """The roofline of an operator of that shape, or of any FLOPs and bytes.

    Args:
        op: an operator's name (memwall op list); or give `flops` and `bytes`.
        gpu: a device, or its name or file.
        dtype: compute and storage format.
        weight_dtype: storage format of the weights.
        kv_dtype: storage format of K and V.
        out_dtype: storage format of the result.
        causal: attention only: mask the keys after each query.
        impl: attention: flash or standard; some others: fused or eager.
        flops: FLOPs of any kernel, of matrix work in `dtype`.
        bytes: bytes that it moves.
        changes: what-ifs on the device: {"memory.bandwidth_gb_per_s": "4000"}.
        defaults: what the caller assumed on the user's behalf, for the report.
        library: whose kernel the estimate is for: cublas, fa3, trtllm, vllm ... or a profiler's name of it.
        calibration: a file of constants for the estimate, as `memwall calibrate` makes.
        bound_only: leave out the estimate.
        shape: the operator's dimensions.

    Raises:
        UsageError: an unknown name, or a shape that cannot be.
        NotAvailable: the device has no peak for that format.
    """
    device = device_of(gpu, changes)
    formats = Formats.named(dtype, weight_dtype, kv_dtype, out_dtype)
    if op is None:
        _check_alone(shape, formats, causal, impl)
        return replace(_of_counts(device, formats, flops, bytes, defaults), bound_only=bound_only)
    if flops is not None or bytes is not None:
        raise UsageError(
            "--flops and --bytes describe a kernel by themselves: leave out --op", "Or leave out both"
        )
    case, settled = _case(op, shape, formats, causal, impl)
    program = case.program
    estimated = None if bound_only else estimate_case(case, device, program, library, calibration)
    return RooflineReport(
        device,
        case.op.name,
        formats,
        bound(program.work, device),
        kernel_bounds(program, device),
        case,
        defaults + settled,
        estimated,
        bound_only,
    )


def _case(
    op: str, shape: Mapping[str, int | None], formats: Formats, causal: bool | None, impl: str | None
) -> tuple[Case, tuple[str, ...]]:
    """The case, and what of it the user left to the defaults."""
    operator = registry.find(op)
    dims, defaulted = registry.resolve(operator, shape)
    settled = operator.mask(dims, causal) if operator.mask else causal
    case = Case(operator, dims, formats, settled, impl)
    check_formats(operator, case.program, formats)
    defaults = [f"shape {case.shape_text}"] if defaulted else []
    if operator.mask and causal is None and dims["seq_q"] > 1:
        defaults.append("causal mask" if settled else "no mask")
    return case, tuple(defaults)


def check_formats(op: registry.Op, program: Program, formats: Formats) -> None:
    """A format that no tensor of the operator has is a mistake, not a wish to ignore.

    Raises:
        UsageError: such a format is named.
    """
    roles = {tensor.role for tensor in (*program.inputs, *program.outputs)}
    for flag, given, role in (
        ("--weight-dtype", formats.weight, "weight"),
        ("--kv-dtype", formats.kv, "cache"),
    ):
        if given and role not in roles:
            raise UsageError(
                f"{op.name} has no tensor that {flag} would change",
                f"See memwall op show {op.name}",
            )


def _check_alone(
    shape: Mapping[str, int | None], formats: Formats, causal: bool | None, impl: str | None
) -> None:
    """What describes an operator says nothing about bare counts."""
    stored = {"weight_dtype": formats.weight, "kv_dtype": formats.kv, "out_dtype": formats.out}
    settings = {**shape, **stored, "causal": causal, "impl": impl}
    extra = [registry.flag(name) for name, value in settings.items() if value is not None]
    if extra:
        raise UsageError(f"--{extra[0]} describes an operator, and none is named", "Add --op, e.g. --op gemv")


def _of_counts(
    device: Device, formats: Formats, flops: float | None, traffic: float | None, defaults: tuple[str, ...]
) -> RooflineReport:
    if flops is None or traffic is None:
        raise UsageError(
            "say which kernel: an operator, or both its FLOPs and its bytes",
            "Try --op gemv, or --flops 4.2e12 --bytes 1.6e10",
        )
    for name, amount in (("flops", flops), ("bytes", traffic)):
        if not isinstance(amount, int | float) or not 0 <= amount <= LARGEST_AMOUNT:  # NaN is neither
            limits = f"a number from 0 to {LARGEST_AMOUNT:.0e}"
            raise UsageError(f"{name} must be {limits}, not {shown(repr(amount))}", "For example: 4.2e12")
    if not flops and not traffic:
        raise UsageError(
            "a kernel with no FLOPs and no bytes takes no time", "Try --flops 4.2e12 --bytes 1.6e10"
        )
    engine = find_dtype(formats.dtype).engine
    if flops and engine is None:
        raise NotAvailable(
            f"no engine computes in {formats.dtype}: it is a storage format", "Try --dtype bf16"
        )
    work = Work(traffic, 0, {engine: flops} if flops and engine else {}, 0, 0)
    return RooflineReport(device, "kernel", formats, bound(work, device), (), None, defaults)
