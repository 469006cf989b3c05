"""What fits, as a record."""

from __future__ import annotations

from memwall.memory.sequences import Pool
from memwall.models.storage import storage_of
from memwall.render.data import Record
from memwall.reports.capacity import CapacityReport
from memwall.reports.capacity_notes import notes, weak_sources
from memwall.reports.levers import Lever


def record(report: CapacityReport) -> Record:
    """The report under its documented keys."""
    return {
        **numbers(report),
        "levers": [_lever_record(lever) for lever in report.levers],
        "defaults": list(report.defaults),
        "assumed": list(report.device.assumed),
        "weak_sources": weak_sources(report),
        "notes": notes(report),
    }


def numbers(report: CapacityReport) -> Record:
    """What the record has without its lists; levers look at every GPU of the catalogue."""
    question, budget, waste = report.question, report.budget, report.waste
    kept = report.pool.footprint
    return {
        "gpu": report.device.name,
        "model": report.model.name,
        "context": question.context,
        "batch": question.batch,
        "tensor_parallel": question.tensor_parallel,
        "weight_dtype": weight_format(report),
        "kv_dtype": question.kv_dtype,
        "policy": question.policy,
        "fits": report.fits,
        "shortfall_bytes": report.shortfall_bytes,
        "smallest_memory_fraction": budget.smallest_fraction(report.cache_bytes),
        "fewest_gpus": report.fewest_gpus,
        "total_bytes": int(report.total.value),
        "memory_fraction": question.fraction,
        "usable_bytes": report.usable_bytes,
        "weight_bytes": budget.weight_bytes,
        "reserve_bytes": budget.reserve_bytes,
        "reserve_is_estimate": question.reserve_bytes is None,
        "kv_budget_bytes": budget.left_bytes,
        "kv_bytes_per_token": report.kv_bytes_per_token,
        "kv_all_layers_bytes_per_token": kept.filling_bytes_per_token,
        "constant_bytes_per_sequence": kept.constant_bytes,
        "state_bytes_per_sequence": kept.state_bytes,
        "indexer_bytes_per_token": kept.indexer_bytes_per_token,
        "kv_bytes_per_sequence": report.kv_bytes_per_sequence,
        "paged_bytes_per_sequence": report.pool.paged_bytes(question.context),
        "max_tokens": report.max_tokens,
        "max_sequences": report.max_sequences,
        "concurrency": report.concurrency,
        "longest_context": report.longest_context,
        "block_tokens": question.block,
        "blocks": report.blocks,
        "policies": {name: _pool_record(pool, report) for name, pool in report.policies.items()},
        "waste": {
            "contiguous_bytes_per_sequence": waste.contiguous_bytes,
            "paged_bytes_per_sequence": waste.paged_bytes,
        },
    }


def weight_format(report: CapacityReport) -> str:
    """How the weights are stored, in words."""
    return storage_of(report.model, report.question.weight_dtype).scheme


def _pool_record(pool: Pool, report: CapacityReport) -> Record:
    context, kept = report.question.context, pool.footprint
    return {
        "kv_bytes_per_token": kept.growth_bytes_per_token,
        "constant_bytes_per_sequence": kept.constant_bytes,
        "kv_bytes_per_sequence": kept.bytes(context),
        "max_tokens": pool.max_tokens(context),
        "max_sequences": pool.max_sequences(context),
        "concurrency": pool.concurrency(context),
    }


def _lever_record(lever: Lever) -> Record:
    then = lever.then
    return {
        "action": lever.action,
        "text": lever.text,
        "freed_bytes": lever.freed_bytes,
        "max_tokens": then.max_tokens,
        "max_sequences": then.max_sequences,
        "fits": then.fits,
    }
