"""The training objective: mean cross-entropy over all positions."""

from torch import Tensor
from torch.nn import functional as F


def language_model_loss(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
