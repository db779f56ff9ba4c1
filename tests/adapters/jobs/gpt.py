"""A tiny language model on random tokens, with a switch for each way of writing a training job that the hook must follow."""

import argparse
import contextlib
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

SEQ = 16
BATCH = 8
NAME = "tiny"
_hidden = 3

parser = argparse.ArgumentParser()
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--accum", type=int, default=1)
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--compile", default="", help="module, fullgraph, inplace, late, function, step, optimizer")
parser.add_argument("--backend", default="aot_eager")
parser.add_argument("--checkpoint", default="", help="block, reentrant, root")
parser.add_argument("--bf16", default="", help="cast, autocast")
parser.add_argument("--optimizers", type=int, default=1)
parser.add_argument("--defer", action="store_true")
parser.add_argument("--scaler", action="store_true")
parser.add_argument("--evaluate", action="store_true")
parser.add_argument("--container", action="store_true")
parser.add_argument("--ddp", action="store_true")
parser.add_argument("--workers", type=int, default=-1)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--seq", type=int, default=SEQ)
parser.add_argument("--lr", type=float, default=1e-2)
parser.add_argument("--save", default="")
args = parser.parse_args()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.attn = nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = self.attn(self.norm(x)).chunk(3, -1)
        x = x + F.scaled_dot_product_attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), is_causal=True).squeeze(1)
        if args.bf16 == "cast":
            h = (x.bfloat16() @ self.up.weight.t().bfloat16()).float() + self.up.bias
        else:
            h = self.up(x)
        return x + self.down(F.gelu(h))


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(64, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, 64)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, y=None):
        h = self.embed(x)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=args.checkpoint == "reentrant") if args.checkpoint in ("block", "reentrant") else block(h)
        logits = self.head(h)
        return F.cross_entropy(logits.reshape(-1, 64), y.reshape(-1)) if y is not None else logits


class Container(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model


class Deferred(torch.optim.SGD):
    """Applies each gradient one update late."""

    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            kept = getattr(p, "kept", None)
            if kept is not None:
                p.add_(kept, alpha=-self.param_groups[0]["lr"])
            p.kept = p.grad.clone()


torch.manual_seed(0)
world = int(os.environ.get("WORLD_SIZE", 1))
rank = int(os.environ.get("RANK", 0))
if args.ddp:
    torch.distributed.init_process_group("gloo")
model = core = Model(args.width, args.layers)
if args.compile == "inplace":
    model.compile(backend=args.backend)
if args.compile in ("module", "fullgraph"):
    model = torch.compile(model, backend=args.backend, fullgraph=args.compile == "fullgraph")
if args.container:
    container = Container(model)
if args.ddp:
    model = nn.parallel.DistributedDataParallel(model)
params = list(model.parameters())
if args.optimizers == 2:
    opts = [torch.optim.SGD([p for p in params if p.ndim == 2], lr=args.lr, momentum=0.9),
            torch.optim.AdamW([p for p in params if p.ndim != 2], lr=args.lr)]
elif args.defer:
    opts = [Deferred(params, lr=args.lr)]
else:
    opts = [torch.optim.AdamW(params, lr=args.lr)]
schedulers = [torch.optim.lr_scheduler.LambdaLR(o, lambda n: 1.0 / (1 + n)) for o in opts]
if args.compile == "late":
    model = torch.compile(model, backend=args.backend)


def loss_of(x, y):
    if args.checkpoint == "root":
        return checkpoint(model, x, y, use_reentrant=False)
    return model(x, y)


def micro_step(x, y):
    with torch.autocast("cpu", torch.bfloat16) if args.bf16 == "autocast" else contextlib.nullcontext():
        loss = loss_of(x, y) / args.accum
    (scaler.scale(loss) if args.scaler else loss).backward()
    return loss


def step():
    for o in opts:
        scaler.step(o) if args.scaler else o.step()
    if args.scaler:
        scaler.update()


if args.compile == "function":
    loss_of = torch.compile(loss_of, backend=args.backend)
if args.compile == "fullfunction":
    loss_of = torch.compile(loss_of, backend=args.backend, fullgraph=True)
if args.compile == "step":
    micro_step = torch.compile(micro_step, backend=args.backend)
if args.compile == "optimizer":
    step = torch.compile(step, backend=args.backend)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0) if args.scaler else None

generator = torch.Generator().manual_seed(5)
data = torch.randint(0, 64, (args.steps * BATCH, args.seq + 1), generator=generator)
if args.workers >= 0:
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=args.workers)
    batches = list(loader)
else:
    batches = data.split(BATCH)

for n, batch in enumerate(batches):
    batch = batch[rank::world]
    total = 0.0
    for micro in batch.chunk(args.accum):
        total += float(micro_step(micro[:, :-1], micro[:, 1:]))
    nn.utils.clip_grad_norm_(params, args.clip)
    step()
    with torch.no_grad():
        core.seen += 1
    for s in schedulers:
        s.step()
    for o in opts:
        o.zero_grad(set_to_none=True)
    if args.evaluate:
        model.eval()
        with torch.no_grad():
            model(batch[:, :-1], batch[:, 1:])
        model.train()
    print("step %d loss %.17g" % (n + 1, total))
from torch._dynamo.utils import counters
print("breaks", sum(counters["graph_break"].values()), "frames", counters["frames"]["ok"], "graphs", counters["stats"]["unique_graphs"])
if args.save:
    torch.save(model, args.save)
if args.ddp:
    torch.distributed.destroy_process_group()
