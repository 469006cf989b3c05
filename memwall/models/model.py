"""A model: groups of equal layers, each made of parts, between an embedding and a head.

Architectures are data: a layer names the kind of its attention, recurrence and MLP and their dimensions, so
a new model is a new file of configs/models/, and a new family of Hugging Face configs is a few lines that
say which keys those dimensions come from. No branch of the code knows a model's name.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.constant import Constant
from memwall.dtypes import Dtype
from memwall.models.attentions import Attention, GroupedAttention
from memwall.models.mlps import Mlp
from memwall.models.recurrences import Recurrence
from memwall.models.weights import Weight

UNREAD = "not read, may change the answer"
"""How a note begins that its user must see, whatever is asked of the model."""


class Layers(NamedTuple):
    """So many equal layers."""

    repeats: int
    attention: Attention | None = None
    mlps: tuple[Mlp, ...] = ()
    """One, none, or several beside each other."""
    recurrence: Recurrence | None = None
    """Instead of attention, or beside it (Falcon-H1)."""
    cross: GroupedAttention | None = None
    """Attention to an encoder's tokens."""
    norms: int = 2
    """Norms of hidden_size weights."""
    extras: tuple[Weight, ...] = ()
    """Weights of no kind above."""
    unquantised: frozenset[str] = frozenset()
    """Linear weights that the checkpoint keeps at 16 bits, by module: self_attn.o_proj."""


class Tower(NamedTuple):
    """An encoder of images or sound in front of a language model, with its projector."""

    name: str
    layers: tuple[Layers, ...]
    hidden_size: int
    weights: tuple[Weight, ...]
    """Those outside the layers."""
    norm_bias: bool = True


class Storage(NamedTuple):
    """How a checkpoint stores its weights: linear layers in one format, everything else in 16 bits."""

    scheme: str
    linear: Dtype
    head: bool = False
    """Whether the head is quantised with the linear layers."""
    compute: str | None = None
    """What it computes in where activations are quantised, too; None: weights alone, widened to 16 bits."""
    every: bool = False
    """Whether it covers linear layers that the checkpoint keeps at 16 bits too: a format asked for does."""
    head_in: Dtype | None = None
    """The quantised head's own format; None: the linear layers'."""
    table: Dtype | None = None
    """The embedding's; None: 16 bits."""


class Model(NamedTuple):
    """A language model: decoder-only, encoder-only, or an encoder and a decoder."""

    name: str
    title: str
    hidden_size: int
    vocab_size: int
    tied_embeddings: bool
    layers: tuple[Layers, ...]
    norm_bias: bool = False
    final_norm: bool = True
    embedding_size: int | None = None
    """Elements of a row of the embedding where they are not hidden_size (OPT-350m)."""
    head: bool = True
    """Whether tokens are predicted; False for a bare encoder."""
    head_bias: bool = False
    extras: tuple[Weight, ...] = ()
    """Weights outside the layers: position tables, projections."""
    encoder: tuple[Layers, ...] = ()
    """Layers that read the whole input at once, before the decoder."""
    decodes: bool = True
    """Whether it generates, token by token; False for an encoder alone."""
    towers: tuple[Tower, ...] = ()
    storage: Storage | None = None
    """The checkpoint's own format; None: 16 bits throughout."""
    checkpoint_bytes: int | None = None
    """What the tensors of its weights' files hold, where these lie beside its config."""
    context: int | None = None
    """The longest sequence it was made for."""
    parameters_published: int | None = None
    sources: tuple[Constant, ...] = ()
    """Where its dimensions come from."""
    notes: tuple[str, ...] = ()
    """What its reader should know: keys not read, what is assumed."""

    @property
    def doubt(self) -> Constant | None:
        """Its dimensions' source, where that is merely recalled or assumed."""
        return next((source for source in self.sources if source.weak), None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes that may make any answer wrong."""
        return tuple(note for note in self.notes if note.startswith(UNREAD))

    @property
    def layer_count(self) -> int:
        """All layers; of an encoder and a decoder, both."""
        return sum(group.repeats for group in (*self.encoder, *self.layers))

    @property
    def row(self) -> int:
        """Elements of a row of the embedding and of the head."""
        return self.embedding_size or self.hidden_size
