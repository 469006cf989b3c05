"""State spaces, alone or between layers of attention: Mamba, Mamba-2 and their hybrids."""

from __future__ import annotations

from memwall.models.huggingface.config import Config
from memwall.models.huggingface.families import family
from memwall.models.huggingface.families.hybrid import recurrent_layers
from memwall.models.huggingface.parts import (
    biased,
    body,
    decoder,
    experts,
    gated,
    grouped,
    layer_count,
    merged,
    plain,
)
from memwall.models.mlps import Mlp
from memwall.models.model import Layers, Model
from memwall.models.recurrences import Mamba, Mamba2


def mamba(c: Config, prefix: str = "", inner_norms: bool = False) -> Mamba:
    """Mamba under Jamba's keys or its own."""
    hidden = c.whole("hidden_size")
    rank = c.get(f"{prefix}dt_rank" if prefix else "time_step_rank")
    inner = int(c.whole(f"{prefix}expand" if prefix else "expand", 2) * hidden)
    inner = inner if prefix else c.whole("intermediate_size", inner)
    return Mamba(
        inner,
        c.whole("mamba_d_state" if prefix else "state_size", 16),
        rank if isinstance(rank, int) else -(-hidden // 16),  # "auto" is a sixteenth
        c.whole("mamba_d_conv" if prefix else "conv_kernel", 4),
        c.flag("mamba_conv_bias" if prefix else "use_conv_bias", True),
        c.flag("mamba_proj_bias" if prefix else "use_bias"),
        inner_norms,
    )


@family("jamba")
def jamba(c: Config) -> Model:
    """One attention in eight, experts in every second layer."""
    attention, recurrence = grouped(c), mamba(c, "mamba_", c.flag("mamba_inner_layernorms", True))
    period, offset = c.whole("attn_layer_period", 8), c.whole("attn_layer_offset", 4, least=0)
    every, first = c.whole("expert_layer_period", 2), c.whole("expert_layer_offset", 1, least=0)
    mixture, dense = experts(c, c.whole("intermediate_size")), gated(c)

    def layer(i: int) -> Layers:
        mlps = (mixture if i % every == first and c.whole("num_experts") > 1 else dense,)
        is_attention = i % period == offset
        return Layers(1, attention, mlps) if is_attention else Layers(1, None, mlps, recurrence)

    return decoder(c, layer)


@family("mamba", "falcon_mamba")
def pure_mamba(c: Config) -> Model:
    """Mamba alone, one norm a layer."""
    recurrence = mamba(c)
    return decoder(
        c, lambda i: Layers(1, None, (), recurrence, norms=1), tied=c.flag("tie_word_embeddings", True)
    )


@family("mamba2")
def pure_mamba2(c: Config) -> Model:
    """Mamba-2 alone, one norm a layer."""
    recurrence = Mamba2(
        c.whole("num_attention_heads"),
        c.whole("head_dim"),
        c.whole("n_groups"),
        c.whole("state_size"),
        c.whole("conv_kernel", 4),
        c.flag("use_conv_bias", True),
        c.flag("use_bias"),
    )
    return decoder(c, lambda i: Layers(1, None, (), recurrence, norms=1))


def mamba2(c: Config, **traits: bool) -> Mamba2:
    """Mamba-2 under the keys of Bamba and Granite 4."""
    heads, each = c.whole("mamba_n_heads"), c.get("mamba_d_head")  # "auto" shares the channels out
    return Mamba2(
        heads,
        each if isinstance(each, int) else c.whole("mamba_expand", 2) * c.whole("hidden_size") // heads,
        c.whole("mamba_n_groups", 1),
        c.whole("mamba_d_state"),
        c.whole("mamba_d_conv", 4),
        c.flag("mamba_conv_bias", True),
        c.flag("mamba_proj_bias"),
        **traits,
    )


@family("bamba", "granitemoehybrid")
def bamba(c: Config) -> Model:
    """Mamba-2 between a few layers of attention; Granite's experts beside a shared MLP, where it has them."""
    count, at = layer_count(c), c.get("attn_layer_indices")
    recurrent = [i not in at for i in range(count)] if at else recurrent_layers(c)
    attention = grouped(c, **biased(c))
    shared = c.whole("shared_intermediate_size", None)
    mlp: Mlp = gated(c, shared, bias=c.flag("mlp_bias"))
    if c.whole("num_experts", 0, least=0):
        mlp = experts(c, c.whole("intermediate_size"), shared or 0)
    recurrence = mamba2(c) if any(recurrent) else None
    return decoder(
        c, lambda i: Layers(1, None, (mlp,), recurrence) if recurrent[i] else Layers(1, attention, (mlp,))
    )


@family("falcon_h1")
def falcon_h1(c: Config) -> Model:
    """Attention and Mamba-2 beside each other in every layer."""
    recurrence = mamba2(c, norm=c.flag("mamba_rms_norm"))
    inner = c.whole("mamba_d_ssm", None) or recurrence.inner
    recurrence = recurrence._replace(head_dim=inner // recurrence.heads, bias=c.flag("projectors_bias"))
    layer = Layers(1, grouped(c, **biased(c)), (gated(c, bias=c.flag("mlp_bias")),), recurrence)
    return decoder(c, lambda i: layer)


_NEMOTRON = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


@family("nemotron_h")
def nemotron_h(c: Config) -> Model:
    """Each layer is one part: Mamba-2, attention, a plain MLP or experts, after one norm."""
    written = c.get("hybrid_override_pattern")
    kinds = (
        [_NEMOTRON[mark] for mark in written if mark in _NEMOTRON] if written else c.get("layers_block_type")
    )
    kinds = kinds or c.get("layer_types") or []
    parts = {
        "attention": Layers(1, grouped(c, **biased(c)), norms=1),
        "mlp": Layers(1, None, (plain(c, bias=c.flag("mlp_bias")),), norms=1),
    }
    recurrence = Mamba2(
        c.whole("mamba_num_heads"),
        c.whole("mamba_head_dim"),
        c.whole("n_groups"),
        c.whole("ssm_state_size"),
        c.whole("conv_kernel", 4),
        c.flag("use_conv_bias", True),
        c.flag("use_bias"),
    )
    parts["mamba"] = Layers(1, None, (), recurrence, norms=1)
    if "moe" in kinds:
        shared = c.whole("moe_shared_expert_intermediate_size", 0, least=0) * c.whole(
            "n_shared_experts", 1, least=0
        )
        latent_size = c.whole("moe_latent_size", None)
        mixture = experts(c, c.whole("moe_intermediate_size"), shared, gated=False, expert_hidden=latent_size)
        parts["moe"] = Layers(1, None, (mixture,), norms=1)
    same = {"linear_attention": "mamba", "full_attention": "attention"}
    if not kinds or any(same.get(kind, kind) not in parts for kind in kinds):
        raise c.wrong("hybrid_override_pattern", "must say what each layer is: M, *, - or E")
    layers = [parts[same.get(kind, kind)] for kind in kinds]
    return body(c, merged(layers))
