"""Training text, made from a seed, and the loaders that serve it.

The order of the samples depends on the seed alone: not on the micro-batch size, not on the number of workers.
Ranks take every world-th sample, so that the samples of one optimizer update are the same on any number of ranks.
"""

import random
from typing import Iterator

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

VOCAB_SIZE = 128  # bytes of ASCII text

NAMES = ["ada", "boole", "curie", "darwin", "euler", "fermat", "gauss", "hopper"]
VERBS = ["measures", "doubles", "forgets", "repairs", "compares", "halves", "sorts", "keeps"]
ADJECTIVES = ["small", "quiet", "broken", "early", "heavy", "narrow", "second", "warm"]
NOUNS = ["engine", "ledger", "river", "lantern", "matrix", "garden", "signal", "window"]
ENDINGS = [".", ".", ".", ";", "?"]


def make_sentence(rng: random.Random) -> str:
    words = [rng.choice(NAMES), rng.choice(VERBS), "the"]
    if rng.random() < 0.6:
        words.append(rng.choice(ADJECTIVES))
    words.append(rng.choice(NOUNS))
    if rng.random() < 0.3:
        words += ["and", rng.choice(VERBS), "it", str(rng.randint(2, 99)), "times"]
    return " ".join(words) + rng.choice(ENDINGS)


def make_text(characters: int, seed: int) -> str:
    rng = random.Random(seed)
    pieces: list[str] = []
    length = 0
    while length < characters:
        sentence = make_sentence(rng) + ("\n" if rng.random() < 0.2 else " ")
        pieces.append(sentence)
        length += len(sentence)
    return "".join(pieces)[:characters]


class TextDataset(Dataset):
    """Windows of seq_len + 1 bytes; the target of a byte is the byte after it."""

    def __init__(self, samples: int, seq_len: int, seed: int) -> None:
        text = make_text(samples * seq_len + 1, seed)
        self.tokens = torch.tensor(list(text.encode("ascii")), dtype=torch.long)
        self.samples = samples
        self.seq_len = seq_len

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        start = index * self.seq_len
        window = self.tokens[start : start + self.seq_len + 1]
        return window[:-1].clone(), window[1:].clone()


class SeededOrder(Sampler):
    """An endless, seeded shuffle: one permutation an epoch, dealt out to the ranks one sample at a time."""

    def __init__(self, samples: int, seed: int, rank: int = 0, world: int = 1) -> None:
        self.samples = samples
        self.seed = seed
        self.rank = rank
        self.world = world

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed)
        position = 0
        while True:
            for index in torch.randperm(self.samples, generator=generator).tolist():
                if position % self.world == self.rank:
                    yield index
                position += 1


def make_train_loader(
    dataset: TextDataset, micro_batch_size: int, num_workers: int, seed: int, rank: int = 0, world: int = 1
) -> DataLoader:
    return DataLoader(
        dataset,
        batch_size=micro_batch_size,
        sampler=SeededOrder(len(dataset), seed, rank, world),
        num_workers=num_workers,
        drop_last=True,
        generator=torch.Generator().manual_seed(seed),
    )
