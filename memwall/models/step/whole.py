"""The whole pass of a model: embedding, layers, head and sampling, as a list of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.models.inventory import outer_weights
from memwall.models.model import Layers, Model
from memwall.models.passes import Tokens
from memwall.models.step.extras import extras, has_rotary
from memwall.models.step.launch import Launch, Setting, launched, merged
from memwall.models.step.layer import layers, norm
from memwall.models.step.linear import parameters, precision_of
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
    s = setting._replace(rotary=has_rotary(model))
    launches: list[Launch] = []
    if model.encoder and s.prefill:
        launches += _stack(model, model.encoder, s._replace(causal=False), "encoder.")
        one = Tokens(s.tokens.batch, 1, 1)
        s = s._replace(tokens=one)
    elif not model.decodes:
        s = s._replace(causal=False)
    launches += _stack(model, model.layers, s)
    outer = s._replace(linear=s.plain, unquantised=_matrices(model))  # quantisation covers layers alone
    launches += extras(
        "outer", [w for w in model.extras if s.prefill or not w.name.startswith("encoder.")], outer
    )
    if model.head:
        launches += _head(model, s)
    return merged(launches)


def _matrices(model: Model) -> frozenset[str]:
    return frozenset(f"{weight.part}.{weight.name}" for weight in model.extras)


def _stack(model: Model, groups: Sequence[Layers], setting: Setting, prefix: str = "") -> list[Launch]:
    """Embedding, layers and final norm of a decoder, or of an encoder."""
    table = gather(setting.rows, model.row, model.vocab_size, precision=setting.plain)
    launches = launched("embedding", "embedding", table)
    inner = [launch for group in groups for launch in layers(group, model, setting)]
    if not model.final_norm:
        launches += inner
    elif setting.eager:
        last = setting._replace(linear=setting.plain)  # the head reads 16 bits
        launches += [*inner, *norm(model.hidden_size, model.norm_bias, last, "final norm")]
    else:  # the last residual sum has the final norm, and the first layer's stands alone
        launches += [*norm(model.hidden_size, model.norm_bias, setting), *inner]
    return [launch._replace(name=f"{prefix}{launch.name}") for launch in launches]


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
