"""Models: parameter counts to the last one, by published totals and by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memwall.catalog import MODELS
from memwall.errors import UnknownName
from memwall.models.load import load
from memwall.models.parameters import count

NAMES = MODELS.names()

# The tensors' sizes added up, as the makers' checkpoints hold them; those marked * are also what
# an independent program computed from the published config.json.
TOTAL = {
    "llama2-7b": 6738415616,  # *
    "llama2-70b": 68976648192,  # *
    "llama3-8b": 8030261248,  # *
    "llama3-70b": 70553706496,  # *
    "llama3-405b": 405853388800,
    "mistral-7b": 7248023552,  # *
    "mixtral-8x7b": 46702792704,  # *
    "qwen2.5-7b": 7615616512,  # *
    "qwen2.5-32b": 32763876352,
    "qwen2.5-72b": 72706203648,
    "qwen3-32b": 32762123264,  # *
    "gemma2-27b": 27227128320,  # *
    "gpt-oss-120b": 116829156672,
    "deepseek-v3": 671026404352,  # *
}

# Active parameters (without the input embedding, of which a token reads one row) and the embedding's
# size, by the independent program.
ACTIVE = {
    "llama2-7b": (6607343616, 131072000),
    "llama2-70b": (68714504192, 262144000),
    "llama3-8b": (7504924672, 525336576),
    "llama3-70b": (69503033344, 1050673152),
    "mistral-7b": (7113805824, 134217728),
    "mixtral-8x7b": (12748853248, 131072000),
    "qwen2.5-7b": (7070619136, 544997376),
    "qwen3-32b": (31984210944, 777912320),
    "gemma2-27b": (27227128320, 1179648000),  # tied: the table counts once, as the head
    "deepseek-v3": (36625603584, 926679040),
}


# Others are the keys of a config.json; their totals are those that another program computed from it.
FILE = Path(__file__).parent / "huggingface" / "published.jsonl"
COMPUTED = [
    json.loads(line)["expected"]["total"] for line in FILE.read_text().splitlines() if "expected" in line
]
IMPORTED = [name for name in NAMES if name not in TOTAL]


def test_every_shipped_model_is_counted_here() -> None:
    assert set(TOTAL) <= set(NAMES)
    assert len(IMPORTED) == 50


@pytest.mark.parametrize("name", IMPORTED)
def test_an_imported_model_has_an_independent_total(name: str) -> None:
    model = load(name)
    assert count(model).total == model.parameters_published
    assert model.parameters_published in COMPUTED


@pytest.mark.parametrize("name", TOTAL)
def test_the_total_is_exact(name: str) -> None:
    assert count(load(name)).total == TOTAL[name]


@pytest.mark.parametrize("name", TOTAL)
def test_the_file_states_the_published_total(name: str) -> None:
    assert load(name).parameters_published == TOTAL[name]


@pytest.mark.parametrize("name", ACTIVE)
def test_active_and_embedding_are_what_an_independent_program_computed(name: str) -> None:
    parameters = count(load(name))
    assert (parameters.active, parameters.embedding) == ACTIVE[name]


@pytest.mark.parametrize(
    "name", [n for n in TOTAL if n not in ("mixtral-8x7b", "gpt-oss-120b", "deepseek-v3")]
)
def test_without_experts_only_the_input_embedding_is_inactive(name: str) -> None:
    parameters = count(load(name))
    tied = load(name).tied_embeddings
    assert parameters.total - parameters.active == (0 if tied else parameters.embedding)


def test_llama3_8b_by_hand() -> None:
    table = 128256 * 4096
    attention = 2 * 4096 * 4096 + 2 * 4096 * 1024  # q and o; k and v of 8 heads of 128
    mlp = 3 * 4096 * 14336
    assert count(load("llama3-8b")).total == 2 * table + 4096 + 32 * (attention + mlp + 2 * 4096)


def test_gpt_oss_120b_by_hand() -> None:
    hidden, heads = 2880, 64 * 64
    attention = 2 * hidden * heads + 2 * hidden * 512  # q, o; k, v of 8 heads of 64
    attention += heads + 2 * 512 + hidden + 64  # their biases, and a sink a head
    expert = 3 * hidden * 2880 + 3 * 2880  # gate, up, down and a bias each
    router = 128 * hidden + 128
    table = 201088 * hidden
    parameters = count(load("gpt-oss-120b"))
    assert parameters.total == 2 * table + hidden + 36 * (attention + router + 128 * expert + 2 * hidden)
    # OpenAI's model card: 116.83B total, 5.13B active
    assert parameters.active == table + hidden + 36 * (attention + router + 4 * expert + 2 * hidden)
    assert parameters.active / 1e9 == pytest.approx(5.13, abs=0.005)


def test_deepseek_v3_by_hand() -> None:
    hidden = 7168
    attention = hidden * 1536 + 1536 + 1536 * 128 * 192  # q: down, norm, up to 128 heads of 128 + 64
    attention += hidden * 576 + 512 + 512 * 128 * 256  # latent and rotary, norm, up to k and v
    attention += 128 * 128 * hidden
    expert = 3 * hidden * 2048
    dense, sparse = 3 * hidden * 18432, 256 * hidden + 257 * expert
    total = 2 * 129280 * hidden + hidden + 61 * (attention + 2 * hidden) + 3 * dense + 58 * sparse
    assert count(load("deepseek-v3")).total == total


@pytest.mark.parametrize(
    ("name", "layers"),
    [("llama3-70b", 80), ("llama3-405b", 126), ("gemma2-27b", 46), ("gpt-oss-120b", 36), ("deepseek-v3", 61)],
)
def test_layers_are_counted_over_their_groups(name: str, layers: int) -> None:
    assert load(name).layer_count == layers


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Llama-3.1-70B", "llama3-70b"),
        ("Meta-Llama-3-8B", "llama3-8b"),
        ("deepseek_r1", "deepseek-v3"),
        ("GPT-OSS", "gpt-oss-120b"),
    ],
)
def test_a_model_is_found_however_it_is_spelt(spelling: str, name: str) -> None:
    assert load(spelling).name == name


@pytest.mark.parametrize(("typo", "near"), [("lama3-70b", "llama3-70b"), ("qwen2.5-27b", "qwen2.5-72b")])
def test_an_unknown_model_names_the_nearest(typo: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown model '{typo}'") as refused:
        load(typo)
    assert near in refused.value.hint
