"""A small evaluation on text that the training never sees."""

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import TextDataset
from loss import language_model_loss

EVAL_SAMPLES = 16
EVAL_BATCH_SIZE = 4


@torch.no_grad()
def evaluate(model: nn.Module, seq_len: int, seed: int) -> float:
    """Mean loss over EVAL_SAMPLES held-out windows."""
    dataset = TextDataset(EVAL_SAMPLES, seq_len, seed + 1_000_003)
    loader = DataLoader(dataset, batch_size=EVAL_BATCH_SIZE, shuffle=False)
    was_training = model.training
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += language_model_loss(model(inputs), targets).item() * inputs.shape[0]
    model.train(was_training)
    return total / EVAL_SAMPLES
