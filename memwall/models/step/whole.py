"""The whole pass of a model: embedding, layers, head and sampling, as a list of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.models.inventory import outer_weights
from memwall.models.mlps import Experts
from memwall.models.model import Layers, Model
from memwall.models.passes import Tokens
from memwall.models.step.extras import extras, has_rotary
from memwall.models.step.launch import Launch, Setting, launched, merged
from memwall.models.step.layer import layers, norm
from memwall.models.step.linear import parameters, precision_of
from memwall.models.step.sides import ENCODER, sides
from memwall.models.weights import Weight
from memwall.ops.elementwise import copy
from memwall.ops.gather import gather
from memwall.ops.sampling import argmax
from memwall.program import Kernel, Tensor


def kernels(model: Model, setting: Setting) -> tuple[Launch, ...]:
    """Every kernel of one pass, equal ones together, in the order in which they first run.

    Prefill reads the prompt and predicts one token a sequence, so the head multiplies the last token alone.
    Decode adds one token a sequence. A model with an encoder prefills by running it over the prompt, and
    its decoder over one token.

    Args:
        model: the model.
        setting: tokens and formats; `tokens` are the prompt's, or those of the decoder that decodes.
    """
    s = setting._replace(rotary=has_rotary(model), widths_differ=len(_widths(model)) > 1)
    both = sides(model)
    launches: list[Launch] = []
    if model.encoder and s.prefill:
        launches += _stack(model, model.encoder, both.encoder, s._replace(causal=False), ENCODER)
        one = Tokens(s.tokens.batch, 1, 1)
        s = s._replace(tokens=one)
    elif not model.decodes:
        s = s._replace(causal=False)
    launches += _stack(model, model.layers, both.decoder, s)
    if model.head:
        launches += _head(model, s)
    return merged(launches)


def _widths(model: Model) -> set[int]:
    """Of MLPs that are no experts."""
    mlps = (mlp for group in (*model.encoder, *model.layers) for mlp in group.mlps)
    return {mlp.width for mlp in mlps if not isinstance(mlp, Experts)}


def _outer(setting: Setting, weights: Sequence[Weight]) -> Setting:
    """Around the layers: a format asked for covers all matrices, a checkpoint's own the layers alone."""
    if setting.storage.every:
        return setting
    kept = frozenset(f"{weight.part}.{weight.name}" for weight in weights)
    return setting._replace(linear=setting.plain, unquantised=kept)


def _is_added(weight: Weight) -> bool:
    """Whether it belongs to a token's embedding: tables of positions and the like, convolutions."""
    return weight.role in ("table", "convolution") or "embed" in weight.name or weight.name.startswith("conv")


def _stack(
    model: Model, groups: Sequence[Layers], around: Sequence[Weight], setting: Setting, prefix: str = ""
) -> list[Launch]:
    """Embedding with what is added to it, layers and final norm of a decoder or an encoder, and the rest."""
    outer = _outer(setting, around)
    added = [weight for weight in around if _is_added(weight)]
    launches = _embedding(model, added, outer)
    launches += _layers(model, groups, setting)
    launches += extras("outer", [weight for weight in around if weight not in added], outer)
    return [launch._replace(name=prefix + launch.name) for launch in launches]


def _embedding(model: Model, added: Sequence[Weight], setting: Setting) -> list[Launch]:
    """A row of each token's; an encoder that begins with convolutions has frames instead of tokens."""
    named = [weight._replace(name=weight.name.removeprefix("embeddings.")) for weight in added]
    launches = extras("embedded", named, setting)
    if any(weight.role == "convolution" for weight in added):
        return launches
    table = gather(setting.rows, model.row, model.vocab_size, precision=setting.plain)
    return [*launched("embedding", "embedding", table), *launches]


def _layers(model: Model, groups: Sequence[Layers], setting: Setting) -> list[Launch]:
    """The layers, and the final norm."""
    launches: list[Launch] = []
    inner = [launch for group in groups for launch in layers(group, model, setting)]
    if not model.final_norm:
        launches += inner
    elif setting.eager:
        last = setting._replace(linear=setting.plain)  # the head reads 16 bits
        launches += [*inner, *norm(model.hidden_size, model.norm_bias, last, "final norm")]
    else:  # the last residual sum has the final norm, and the first layer's stands alone
        launches += [*norm(model.hidden_size, model.norm_bias, setting), *inner]
    return launches


def _head(model: Model, setting: Setting) -> list[Launch]:
    """Logits of the last token of each sequence, of all where nothing is generated, and the next token."""
    rows = setting.tokens.batch if model.decodes and setting.prefill else setting.rows
    weight = Weight(
        "embed_tokens" if model.tied_embeddings else "lm_head", (model.vocab_size, model.row), "head"
    )
    formats = precision_of(weight, setting)
    x = Tensor("a", (rows, model.row), formats.activation)
    table = Tensor(weight.name, weight.shape, formats.weight, "weight")
    logits = Tensor("c", (rows, model.vocab_size), formats.result)
    biases = parameters([w for w in outer_weights(model) if w.name == "lm_head.bias"], setting)
    product = Kernel(
        "gemm",
        (x, table, *biases),
        (logits,),
        2 * rows * model.vocab_size * model.row,
        rows * model.vocab_size * len(biases),
        compute=formats.compute,
    )
    head = Launch("head", "head", product)
    return [head, *(_sampling(rows, model.vocab_size, setting) if model.decodes else [])]


def _sampling(rows: int, vocab: int, setting: Setting) -> list[Launch]:
    """The most likely token; eager, of logits widened to fp32."""
    if not setting.eager:
        return launched("sampling", "sampling", argmax(rows, vocab, precision=setting.plain))
    from memwall.dtypes import find

    fp32 = find("fp32")
    widen = copy(rows, vocab, precision=setting.plain._replace(plain=fp32))
    program = argmax(rows, vocab, precision=setting.plain._replace(activation=fp32))
    return [
        *launched("sampling.to fp32", "sampling", widen),
        *launched("sampling.argmax", "sampling", program),
    ]
