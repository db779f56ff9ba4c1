#!/usr/bin/env bash
# Launches the training job on the shared box.
#   bash train.sh                        as it runs today
#   NPROC=2 bash train.sh                the same job on two processes (DDP, gloo)
#   bash train.sh --updates 100          further flags go to train.py
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

PYTHON="${PYTHON:-python3}"
NPROC="${NPROC:-1}"
SEED=1337
MICRO_BATCH=2
GRAD_ACCUM=8
MEMORY_KIB=$((620 * 1024)) # what each process may allocate on the shared box

if ! "$PYTHON" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'; then
    echo "train.sh: $PYTHON cannot find PyTorch; install it (pip install torch) or set PYTHON to an interpreter that has it" >&2
    exit 1
fi

export OMP_NUM_THREADS=1
export GOMP_SPINCOUNT=10000 # others use these cores: a waiting thread soon sleeps
ulimit -d "$MEMORY_KIB"

LAUNCHER=("$PYTHON")
if [ "$NPROC" -gt 1 ]; then
    LAUNCHER=("$PYTHON" -m torch.distributed.run --standalone --nproc_per_node "$NPROC")
    GRAD_ACCUM=$((GRAD_ACCUM / NPROC))
fi

exec "${LAUNCHER[@]}" train.py \
    --micro-batch-size "$MICRO_BATCH" \
    --grad-accum "$GRAD_ACCUM" \
    --activation-checkpointing \
    --num-workers 0 \
    --threads 0 \
    --lr 1e-3 \
    --weight-decay 0.1 \
    --seed "$SEED" \
    "$@"
