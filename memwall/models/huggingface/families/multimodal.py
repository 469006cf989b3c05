"""Language models with towers in front: the text part is a family of its own, the projector is named here."""

from __future__ import annotations

from collections.abc import Callable

from memwall.models.huggingface import sound, towers
from memwall.models.huggingface.config import Config
from memwall.models.huggingface.defaults import defaults_of
from memwall.models.huggingface.families import family, find
from memwall.models.huggingface.towers import linear, normed
from memwall.models.model import Model
from memwall.models.weights import Weight, vector

Projector = Callable[[Config, Config, int], tuple[Weight, ...]]


def with_tower(
    c: Config, text_type: str, vision_type: str, projector: Projector, always: bool = False
) -> Model:
    """The text model, and its tower with the projector.

    Args:
        c: the outer config.
        text_type: the text's model_type where the file states none.
        vision_type: the tower's, likewise.
        projector: the weights between them, from the outer and the tower's config and the text's hidden size.
        always: the class makes its own default tower where the file has none.
    """
    model = text_model(c, text_type)
    if not (always or c.data.get("vision_config")):
        return model
    inner = c.inner("vision_config")
    c.inners.append(inner)
    kind = str(inner.get("model_type") or vision_type)
    inner.defaults = defaults_of(f"{kind}_vision") or defaults_of(kind)
    build = towers.find(kind) or towers.find(vision_type)
    if build is None:
        c.notes.append(f"vision_config of type {kind} has no formula here: its parameters are not counted")
        return model
    tower = build(inner, model.hidden_size)
    joined = projector(c, inner, model.hidden_size)
    return model._replace(towers=(tower._replace(weights=(*tower.weights, *joined)),))


def text_model(c: Config, text_type: str) -> Model:
    """The language model of text_config, or of the outer keys where the file is flat."""
    nested = next((key for key in ("text_config", "llm_config", "language_config") if c.data.get(key)), None)
    kind = text_type
    inner = c
    if nested:
        inner = c.inner(nested)
        kind = str(inner.get("model_type") or text_type)
    inner.defaults = defaults_of(kind)
    build = find(kind)
    if build is None:
        raise c.unknown_family(kind)
    model = build(inner)
    c.read.add("tie_word_embeddings")
    outer = c.data.get("tie_word_embeddings")  # where both say it, the outer one holds
    if nested and isinstance(outer, bool):
        model = model._replace(tied_embeddings=outer)
    if nested:
        c.inners.append(inner)
    return model


def _none(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
    return ()


@family("ministral3")
def ministral3(c: Config) -> Model:
    """A text model; some files wrap it in text_config and put a tower beside it, which is mistral3's."""
    if not c.data.get("text_config"):
        return _same(c, "mistral")
    if c.data.get("vision_config"):
        c.read |= {"vision_config", "spatial_merge_size", "multimodal_projector_bias"}
        c.notes.append(
            "vision_config is not counted: model_type ministral3 is the text model (mistral3 has the tower)"
        )
    return text_model(c, "ministral3")


@family("gemma3")
def gemma3(c: Config) -> Model:
    """SigLIP, a projection and a norm."""

    def projector(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
        size = vision.whole("hidden_size")
        return Weight("mm_input_projection", (size, hidden)), vector("mm_soft_emb_norm", size)

    return with_tower(c, "gemma3_text", "siglip_vision_model", projector)


@family("gemma4")
def gemma4(c: Config) -> Model:
    """A tower for images and, in the small ones, one for sound, each with a projection."""

    def projector(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
        return linear("embed_vision", hidden, vision.whole("hidden_size"), biased=False)

    model = with_tower(c, "gemma4_text", "gemma4_vision", projector)
    if not c.data.get("audio_config"):
        return model
    audio = c.inner("audio_config", defaults_of("gemma4_audio"))
    c.inners.append(audio)
    return model._replace(towers=(*model.towers, sound.gemma4(audio, model.hidden_size)))


@family("gemma3n")
def gemma3n(c: Config) -> Model:
    """The text part; its towers are convolutional and have no formula here."""
    if c.data.get("vision_config") or c.data.get("audio_config"):
        c.notes.append(
            "vision_config and audio_config have no formula here: their parameters are not counted"
        )
    c.get("vision_config"), c.get("audio_config")
    return text_model(c, "gemma3n_text")


@family("qwen2_vl")
def qwen2_vl(c: Config) -> Model:
    """Newer files nest the text, older ones keep it flat."""
    return with_tower(c, "qwen2", "qwen2_vl", _none)


@family("qwen2_vl_text", "qwen2_5_vl_text")
def qwen2_vl_text(c: Config) -> Model:
    """Qwen2."""
    return _same(c, "qwen2")


@family("qwen2_5_vl")
def qwen2_5_vl(c: Config) -> Model:
    """As Qwen2-VL."""
    return with_tower(c, "qwen2", "qwen2_5_vl", _none)


@family("qwen3_vl")
def qwen3_vl(c: Config) -> Model:
    """A dense Qwen3."""
    return with_tower(c, "qwen3", "qwen3_vl", _none)


@family("qwen3_vl_text")
def qwen3_vl_text(c: Config) -> Model:
    """Qwen3."""
    return _same(c, "qwen3")


@family("qwen3_vl_moe")
def qwen3_vl_moe(c: Config) -> Model:
    """A Qwen3 mixture."""
    model = with_tower(c, "qwen3_moe", "qwen3_vl_moe", _none)
    return model._replace(tied_embeddings=c.flag("tie_word_embeddings"))  # the inner one is never asked


@family("qwen3_5", "qwen3_5_moe")
def qwen3_5(c: Config) -> Model:
    """A hybrid Qwen3.5, flat or nested."""
    return with_tower(c, f"{c.get('model_type')}_text", f"{c.get('model_type')}_vision", _none)


@family("llama4")
def llama4(c: Config) -> Model:
    """Its class makes a tower even where the file has no vision_config."""
    if not c.data.get("vision_config"):
        c.notes.append("vision_config is not in the file: the class's default tower is counted")

    def projector(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
        return linear("projector", hidden, vision.whole("vision_output_dim"), biased=False)

    return with_tower(c, "llama4_text", "llama4_vision_model", projector, always=True)


@family("mistral3")
def mistral3(c: Config) -> Model:
    """Pixtral, a norm, a patch merger and two linear layers."""

    def projector(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
        size, merge = vision.whole("hidden_size"), c.whole("spatial_merge_size", 2)
        biased = c.flag("multimodal_projector_bias")
        return (
            vector("projector.norm", size),
            *linear("patch_merger", size, size * merge * merge, biased=False),
            *linear("projector.linear_1", hidden, size, biased),
            *linear("projector.linear_2", hidden, hidden, biased),
        )

    return with_tower(c, "mistral", "pixtral", projector)


@family("llava", "llava_next", "llava_onevision")
def llava(c: Config) -> Model:
    """Two linear layers; LLaVA-NeXT and OneVision learn the end of an image's row, too."""

    def projector(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
        size, biased = vision.whole("hidden_size"), c.flag("multimodal_projector_bias", True)
        newline = () if c.get("model_type") == "llava" else (vector("image_newline", hidden),)
        first = linear("projector.linear_1", hidden, size, biased)
        return (*newline, *first, *linear("projector.linear_2", hidden, hidden, biased))

    return with_tower(c, "llama", "clip_vision_model", projector)


@family("paligemma")
def paligemma(c: Config) -> Model:
    """SigLIP and one linear layer."""

    def projector(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
        return linear("projector", hidden, vision.whole("hidden_size"))

    return with_tower(c, "gemma", "siglip_vision_model", projector)


@family("internvl", "internvl_chat")
def internvl(c: Config) -> Model:
    """InternViT, four patches joined, a norm and two linear layers."""

    def projector(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
        ratio = c.get("downsample_ratio") or 0.5
        joined = round(vision.whole("hidden_size") / ratio**2)
        first = linear("projector.linear_1", hidden, joined)
        return (*normed("projector.norm", joined), *first, *linear("projector.linear_2", hidden, hidden))

    return with_tower(c, "qwen2", "internvl_vision", projector)


@family("aya_vision")
def aya_vision(c: Config) -> Model:
    """SigLIP, four patches joined, a norm and a gated pair of linear layers."""

    def projector(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
        joined = vision.whole("hidden_size") * c.whole("downsample_factor", 2) ** 2
        inner = c.whole("alignment_intermediate_size", hidden)
        first = linear("projector.linear_1", inner, joined)
        return (*normed("projector.norm", joined), *first, *linear("projector.linear_2", hidden, inner // 2))

    return with_tower(c, "cohere2", "siglip_vision_model", projector)


@family("idefics3", "smolvlm")
def idefics3(c: Config) -> Model:
    """SigLIP, neighbouring patches joined, one linear layer."""

    def projector(c: Config, vision: Config, hidden: int) -> tuple[Weight, ...]:
        joined = vision.whole("hidden_size") * c.whole("scale_factor", 2) ** 2
        return linear("connector", hidden, joined, biased=False)

    return with_tower(c, "llama", "idefics3_vision", projector)


@family("glm4v")
def glm4v(c: Config) -> Model:
    """GLM-4.1V: a dense GLM-4."""
    return with_tower(c, "glm4v_text", "glm4v_vision", _none)


@family("glm4v_moe")
def glm4v_moe(c: Config) -> Model:
    """GLM-4.5V: a GLM-4.5 mixture."""
    return with_tower(c, "glm4v_moe_text", "glm4v_moe_vision", _none)


@family("kimi_k25", "kimi_vl")
def kimi_k25(c: Config) -> Model:
    """DeepSeek-V3 behind a tower that sees videos."""
    return with_tower(c, "deepseek_v3", "kimi_k25_vision", _none)


def _same(c: Config, kind: str) -> Model:
    """The family of another model_type."""
    build = find(kind)
    if build is None:
        raise c.unknown_family(kind)
    return build(c)
