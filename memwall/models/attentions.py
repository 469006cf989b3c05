"""The kinds of attention that a layer may have: grouped queries, or a compressed latent."""

from __future__ import annotations

from typing import Literal, NamedTuple

from memwall.models.weights import Weight, bias, vector, within


class GroupedAttention(NamedTuple):
    """Attention with heads of K and V shared by groups of query heads (MHA, GQA, MQA)."""

    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int | None = None
    """Elements of a value head where they differ (MiMo-V2)."""
    window: int | None = None
    """Keys that a query sees; None for all."""
    qkv_bias: bool = False
    key_bias: bool | None = None
    """None: as qkv_bias (Whisper has none on K alone)."""
    output_bias: bool = False
    qk_norm: Literal["", "head", "heads", "full"] = ""
    """Norms of Q and K. head: head_dim weights shared by the heads; heads: each head its own; full: one norm
    over all heads together."""
    qk_norm_bias: bool = False
    sinks: bool = False
    """One learned score a head that no key answers (gpt-oss)."""
    gate: int = 0
    """Outputs of a projection that gates the result: heads x head_dim (Qwen3-Next) or heads; 0 without."""
    keys_are_values: bool = False
    """V is K before its norm and rotation, so that there is no V projection; both are cached (Gemma 4)."""
    shares_cache: bool = False
    """Reads the K and V of an earlier layer and has none of its own (Gemma 3n and 4)."""

    @property
    def head_dim_v(self) -> int:
        """Elements of a value head."""
        return self.head_dim if self.v_head_dim is None else self.v_head_dim

    @property
    def cached_elements(self) -> int:
        """Elements that one token adds to the cache of one layer: K and V."""
        return 0 if self.shares_cache else self.kv_heads * (self.head_dim + self.head_dim_v)

    @property
    def cache_shards(self) -> int:
        """The most parts that tensor parallelism cuts its cache into: whole heads."""
        return self.kv_heads

    def weights(self, hidden: int, source: int | None = None) -> tuple[Weight, ...]:
        """Projections of Q, K, V and O, with their biases and norms.

        Args:
            hidden: elements of a token.
            source: elements of the tokens that K and V are made of, where they differ.
        """
        query = Weight("q_proj", (self.heads * self.head_dim, hidden), "linear", self.heads, kernel="qkv")
        weights = [query, *self._key_and_value(source or hidden)]
        if self.gate:
            weights.append(Weight("gate_proj", (self.gate, hidden), "linear", self.heads, kernel="qkv"))
        out = (hidden, self.heads * self.head_dim_v)
        output = Weight("o_proj", out, "linear", self.heads, kernel="output")
        biased = [weight for weight in weights if weight.name in self._biased]
        biased += [output] if self.output_bias else []
        weights += [output, *map(bias, biased), *self._norms()]
        if self.sinks:
            weights.append(vector("sinks", self.heads, self.heads))
        return within("self_attn", weights)

    @property
    def _biased(self) -> set[str]:
        names = {"q_proj", "k_proj", "v_proj"} if self.qkv_bias else set()
        return names - ({"k_proj"} if self.key_bias is False else set())

    def _key_and_value(self, source: int) -> list[Weight]:
        if self.shares_cache:
            return []
        key = Weight("k_proj", (self.kv_heads * self.head_dim, source), "linear", self.kv_heads, kernel="qkv")
        value = key._replace(name="v_proj", shape=(self.kv_heads * self.head_dim_v, source))
        return [key] if self.keys_are_values else [key, value]

    def _norms(self) -> list[Weight]:
        if not self.qk_norm:
            return []
        heads = {"q_norm": self.heads, "k_norm": self.kv_heads}
        if self.shares_cache:
            del heads["k_norm"]
        norms = [
            vector(name, self.head_dim * (1 if self.qk_norm == "head" else count))
            for name, count in heads.items()
        ]
        return norms + [bias(norm) for norm in norms if self.qk_norm_bias]


class LatentAttention(NamedTuple):
    """Multi-head latent attention: one compressed vector a token serves every head as K and V."""

    heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    window: int | None = None
    bias: bool = False
    """Biases on the down projections and the output."""
    index_heads: int = 0
    """Heads of an indexer that picks the keys to attend to (DeepSeek sparse attention); 0 without."""
    index_head_dim: int = 0
    index_topk: int = 0
    """Keys that each query attends to, at most."""

    @property
    def kv_heads(self) -> int:
        """Un-absorbed, as in prefill, every head has its own K and V."""
        return self.heads

    @property
    def head_dim(self) -> int:
        """Elements of a query and key head, un-absorbed."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def head_dim_v(self) -> int:
        """Elements of a value head, un-absorbed."""
        return self.v_head_dim

    @property
    def cached_elements(self) -> int:
        """Elements that one token adds to the cache of one layer: the latent and the rotary part."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def cache_shards(self) -> int:
        """Every GPU needs the whole latent, however many share the heads."""
        return 1

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Down and up projections of Q and of the latent, the output, and the indexer's."""
        heads, latent = self.heads, self.kv_lora_rank
        kv_down = Weight("kv_a_proj", (self.cached_elements, hidden), kernel="down")
        up = heads * (self.qk_nope_head_dim + self.v_head_dim)
        kv_up = Weight("kv_b_proj", (up, latent), "linear", heads, kernel="kv_up")
        output = Weight("o_proj", (hidden, heads * self.v_head_dim), "linear", heads, kernel="output")
        biased = [kv_down, output]
        if self.q_lora_rank:
            q_down = Weight("q_a_proj", (self.q_lora_rank, hidden), kernel="down")
            q_up = Weight(
                "q_b_proj", (heads * self.head_dim, self.q_lora_rank), "linear", heads, kernel="q_up"
            )
            query = [q_down, vector("q_a_norm", self.q_lora_rank), q_up]
            biased.append(q_down)
        else:
            query = [Weight("q_proj", (heads * self.head_dim, hidden), "linear", heads, kernel="down")]
        weights = [*query, kv_down, vector("kv_a_norm", latent), kv_up, output, *self._indexer(hidden)]
        return within("self_attn", weights + (list(map(bias, biased)) if self.bias else []))

    def _indexer(self, hidden: int) -> list[Weight]:
        """Its queries from the compressed ones, one key a token with a norm, and a weight a head."""
        if not self.index_heads:
            return []
        query = (self.index_heads * self.index_head_dim, self.q_lora_rank or hidden)
        norm = vector("indexer.k_norm", self.index_head_dim)
        return [
            Weight("indexer.wq_b", query, kernel="index_q"),
            Weight("indexer.wk", (self.index_head_dim, hidden), kernel="index_k"),
            norm,
            bias(norm),
            Weight("indexer.weights_proj", (self.index_heads, hidden), kernel="index_k"),
        ]


Attention = GroupedAttention | LatentAttention
