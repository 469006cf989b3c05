"""Multi-head latent attention: DeepSeek-V2 and after."""

from __future__ import annotations

from memwall.models.huggingface.config import Config
from memwall.models.huggingface.families import family
from memwall.models.huggingface.parts import decoder, experts, gated, latent, shared_experts
from memwall.models.huggingface.patterns import sparse
from memwall.models.mlps import Mlp
from memwall.models.model import Layers, Model


@family("deepseek_v2", "deepseek_v3", "kimi_k2", "deepseek_v32", "glm_moe_dsa", "glm4_moe_lite", "sarvam_mla")
def deepseek(c: Config) -> Model:
    """Dense layers first, then experts beside shared ones of their width; an indexer where it has keys."""
    has_experts, attention = sparse(c), latent(c)
    width = c.whole("moe_intermediate_size")
    mixture = experts(c, width, shared_experts(c, width)) if any(has_experts) else None

    def layer(i: int) -> Layers:
        mlp: Mlp = mixture if mixture and has_experts[i] else gated(c)
        return Layers(1, attention, (mlp,))

    return decoder(c, layer)


@family("minicpm3", "youtu")
def minicpm3(c: Config) -> Model:
    """Latent attention and a dense MLP."""
    attention = latent(c)
    return decoder(c, lambda i: Layers(1, attention, (gated(c, bias=c.flag("mlp_bias")),)))
