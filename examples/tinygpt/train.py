"""Train TinyGPT on the CPU. See README.md; train.sh is how it is launched today."""

import argparse
import contextlib
import math
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from data import VOCAB_SIZE, TextDataset, make_train_loader
from evaluate import evaluate
from loss import language_model_loss
from model import ModelConfig, TinyGPT


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)

    job = parser.add_argument_group("the job")
    job.add_argument("--updates", type=int, default=30, help="number of optimizer updates")
    job.add_argument("--seed", type=int, default=1337)
    job.add_argument("--layers", type=int, default=6)
    job.add_argument("--dim", type=int, default=64)
    job.add_argument("--heads", type=int, default=8)
    job.add_argument("--seq-len", type=int, default=176)
    job.add_argument("--dropout", type=float, default=0.0)
    job.add_argument("--train-samples", type=int, default=1024, help="windows of text in an epoch")
    job.add_argument("--lr", type=float, default=1e-3)
    job.add_argument("--min-lr", type=float, default=1e-4)
    job.add_argument("--warmup-updates", type=int, default=5)
    job.add_argument("--weight-decay", type=float, default=0.1)
    job.add_argument("--beta1", type=float, default=0.9)
    job.add_argument("--beta2", type=float, default=0.95)
    job.add_argument("--clip-norm", type=float, default=1.0)
    job.add_argument("--eval-every", type=int, default=0, help="updates between evaluations; 0: only at the end")
    job.add_argument("--save", default="", help="write the final weights to this file")

    launch = parser.add_argument_group("how it is run")
    launch.add_argument("--micro-batch-size", type=int, default=1, help="sequences in one forward pass, per rank")
    launch.add_argument("--grad-accum", type=int, default=16, help="micro-batches in an update, per rank")
    launch.add_argument("--compile", action="store_true", help="torch.compile the model")
    launch.add_argument(
        "--activation-checkpointing",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="recompute the blocks in the backward pass instead of keeping their activations",
    )
    launch.add_argument("--num-workers", type=int, default=0, help="processes that load data")
    launch.add_argument("--threads", type=int, default=0, help="CPU threads of torch; 0: torch's default")
    return parser.parse_args()


def learning_rate(update: int, args: argparse.Namespace) -> float:
    """Linear warmup, then a cosine from lr down to min_lr; `update` counts from 1."""
    if update <= args.warmup_updates:
        return args.lr * update / args.warmup_updates
    progress = (update - args.warmup_updates) / max(1, args.updates - args.warmup_updates)
    return args.min_lr + 0.5 * (args.lr - args.min_lr) * (1.0 + math.cos(math.pi * min(1.0, progress)))


def make_optimizer(model: nn.Module, args: argparse.Namespace) -> torch.optim.Optimizer:
    decay = [p for p in model.parameters() if p.dim() >= 2]
    no_decay = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": decay, "weight_decay": args.weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=args.lr, betas=(args.beta1, args.beta2), foreach=False, fused=False)


def clip_gradients(model: nn.Module, max_norm: float) -> float:
    """Scale all gradients so that their joint norm is at most max_norm; return the norm before."""
    total = 0.0
    for parameter in model.parameters():
        if parameter.grad is not None:
            total += parameter.grad.norm().item() ** 2
    norm = math.sqrt(total)
    if norm > max_norm:
        scale = max_norm / (norm + 1e-6)
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(scale)
    return norm


def average_over_ranks(value: float, world: int) -> float:
    if world == 1:
        return value
    tensor = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(tensor)
    return tensor.item() / world


def train(args: argparse.Namespace, rank: int, world: int) -> None:
    torch.manual_seed(args.seed)
    config = ModelConfig(
        vocab_size=VOCAB_SIZE,
        seq_len=args.seq_len,
        layers=args.layers,
        heads=args.heads,
        dim=args.dim,
        dropout=args.dropout,
        activation_checkpointing=args.activation_checkpointing,
    )
    raw_model = TinyGPT(config)
    model: nn.Module = raw_model
    if world > 1:
        model = DistributedDataParallel(model)
    if args.compile:
        model = torch.compile(model)
    optimizer = make_optimizer(raw_model, args)

    dataset = TextDataset(args.train_samples, args.seq_len, args.seed)
    batches = iter(make_train_loader(dataset, args.micro_batch_size, args.num_workers, args.seed, rank, world))

    tokens_per_update = args.micro_batch_size * args.grad_accum * args.seq_len * world
    if rank == 0:
        parameters = sum(p.numel() for p in raw_model.parameters())
        print(f"{parameters} parameters | {tokens_per_update} tokens per update | {world} rank(s)", flush=True)

    model.train()
    ended = time.perf_counter()
    for update in range(1, args.updates + 1):
        lr = learning_rate(update, args)
        for group in optimizer.param_groups:
            group["lr"] = lr

        optimizer.zero_grad()
        update_loss = 0.0
        for micro_step in range(args.grad_accum):
            inputs, targets = next(batches)
            is_last = micro_step == args.grad_accum - 1
            synchronise_later = world > 1 and not is_last
            with model.no_sync() if synchronise_later else contextlib.nullcontext():
                logits = model(inputs)
                loss = language_model_loss(logits, targets) / args.grad_accum
                loss.backward()
            update_loss += loss.item()

        norm = clip_gradients(raw_model, args.clip_norm)
        optimizer.step()
        update_loss = average_over_ranks(update_loss, world)
        seconds, ended = time.perf_counter() - ended, time.perf_counter()

        if rank == 0:
            print(
                f"step {update} | loss {update_loss:.4f} | norm {norm:.3f} | lr {lr:.1e} "
                f"| dt {1000 * seconds:.1f} ms | tok/s {tokens_per_update / seconds:.0f}",
                flush=True,
            )
            if args.eval_every > 0 and update % args.eval_every == 0 and update < args.updates:
                print(f"eval {update} | loss {evaluate(raw_model, args.seq_len, args.seed):.4f}", flush=True)

    if rank == 0:
        print(f"eval {args.updates} | loss {evaluate(raw_model, args.seq_len, args.seed):.4f}", flush=True)
        if args.save:
            torch.save(raw_model.state_dict(), args.save)


def main() -> None:
    args = parse_args()
    if args.threads > 0:
        torch.set_num_threads(args.threads)
    rank = int(os.environ.get("RANK", "0"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("gloo")
    try:
        train(args, rank, world)
    finally:
        if world > 1:
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
