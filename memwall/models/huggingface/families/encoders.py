"""Encoders alone: BERT and its relatives. All tokens at once, no cache, no decode step."""

from __future__ import annotations

from memwall.models.huggingface.config import Config
from memwall.models.huggingface.families import family
from memwall.models.huggingface.parts import body, gated, grouped, layer_count, plain, table
from memwall.models.model import Layers, Model
from memwall.models.weights import Weight, bias, vector


def _norm(name: str, size: int) -> tuple[Weight, ...]:
    norm = vector(name, size)
    return norm, bias(norm)


def _masked(c: Config, encoder: Layers, tables: tuple[Weight, ...], head: tuple[Weight, ...]) -> Model:
    """An encoder after a normed sum of tables; a transform and the embedding's transpose predict tokens."""
    row = c.whole("embedding_size", c.whole("hidden_size"))
    return body(
        c,
        (encoder._replace(repeats=layer_count(c)),),
        norm_bias=True,
        final_norm=False,
        tied=c.flag("tie_word_embeddings", True),
        embedding_size=row,
        head_bias=True,
        decodes=False,
        extras=(*tables, *_norm("embeddings.LayerNorm", row), *head),
    )


def _layer(c: Config) -> Layers:
    """Biases everywhere, a norm with bias after each part."""
    return Layers(1, grouped(c, qkv_bias=True, output_bias=True), (plain(c, bias=True),))


def _transform(size: int, row: int) -> tuple[Weight, ...]:
    """Dense, with bias, and a norm."""
    dense = Weight("transform.dense", (row, size))
    return dense, bias(dense), *_norm("transform.LayerNorm", row)


def _tables(c: Config, row: int) -> tuple[Weight, ...]:
    positions = table("position_embeddings", c.whole("max_position_embeddings"), row)
    kinds = c.whole("type_vocab_size", 2, least=0)
    return (positions, table("token_type_embeddings", kinds, row)) if kinds else (positions,)


@family("bert", "roberta", "xlm_roberta", "camembert", "ernie", "data2vec_text")
def bert(c: Config) -> Model:
    """Learned positions and token types; a dense transform before the tied head."""
    hidden = c.whole("hidden_size")
    return _masked(c, _layer(c), _tables(c, hidden), _transform(hidden, hidden))


@family("roberta_prelayernorm")
def roberta_prelayernorm(c: Config) -> Model:
    """Norms before each part, and so one after the last."""
    return bert(c)._replace(final_norm=True)


@family("electra")
def electra(c: Config) -> Model:
    """An embedding of its own size, projected to the layers'."""
    hidden, row = c.whole("hidden_size"), c.whole("embedding_size", c.whole("hidden_size"))
    into = Weight("embeddings_project", (hidden, row))
    project = (into, bias(into)) if row != hidden else ()
    return _masked(c, _layer(c), _tables(c, row), (*project, *_transform(hidden, row)))


@family("distilbert")
def distilbert(c: Config) -> Model:
    """BERT without token types, in half the layers."""
    hidden = c.whole("hidden_size")
    attention = grouped(c, qkv_bias=True, output_bias=True)
    layer = Layers(1, attention, (plain(c, c.whole("hidden_dim"), bias=True),))
    positions = (table("position_embeddings", c.whole("max_position_embeddings"), hidden),)
    return _masked(c, layer, positions, _transform(hidden, hidden))


@family("modernbert")
def modernbert(c: Config) -> Model:
    """Gated MLPs, rotary positions, norms without biases; the first layer has no norm before attention."""
    hidden = c.whole("hidden_size")
    attention = grouped(c, qkv_bias=c.flag("attention_bias"), output_bias=c.flag("attention_bias"))
    layer = Layers(layer_count(c) - 1, attention, (gated(c, bias=c.flag("mlp_bias")),))
    dense = Weight("head.dense", (hidden, hidden))
    return body(
        c,
        (layer._replace(repeats=1, norms=1), layer),
        tied=c.flag("tie_word_embeddings", True),
        head_bias=c.flag("decoder_bias", True),
        decodes=False,
        extras=(vector("embeddings.norm", hidden), dense, vector("head.norm", hidden)),
    )
