"""Who is measured: a small file for each library, and a line here for each entry."""

from functools import partial

from cbrank.bench.peers import cbr, libauc, river, scikit, vowpal
from cbrank.bench.peers.learner import Learner, Peer
from cbrank.bench.peers.yardstick import PlainLoop

__all__ = ["BUFFERS", "PEERS", "Learner", "Peer"]

C = 2.0**-4
BUFFERS = (1, 5, 10, 20, 50, 100, 200)

_FULL = [
    Peer(f"CBR {M}", partial(cbr.Chunks, C=C, buffer_size=M), takes=("dense",)) for M in BUFFERS
]
_DIAGONAL = [
    Peer(f"CBR-diag {M}", partial(cbr.Chunks, C=C, buffer_size=M, covariance="diagonal"))
    for M in BUFFERS
]
_OTHERS = [
    Peer("CBR 50, last mean", partial(cbr.Chunks, C=C, average=False), takes=("dense",)),
    Peer("CBR 10, row by row", partial(cbr.Rows, C=C, buffer_size=10), takes=("dense",)),
    Peer("CBR as it comes", cbr.Chunks, takes=("dense",)),
    Peer("CBR-diag as it comes", partial(cbr.Chunks, covariance="diagonal")),
    Peer("Plain loop 50", partial(PlainLoop, C=C, buffer_size=50), takes=("dense",)),
    Peer("SGD", partial(scikit.Sgd, loss="log_loss")),
    Peer("SGD hinge", partial(scikit.Sgd, loss="hinge")),
    Peer("SGD averaged", partial(scikit.Sgd, loss="log_loss", average=True)),
    Peer("Batch LR", scikit.Batch),
    Peer("River LR", river.LogisticRegression, needs=river.NEEDS),
    Peer("River AdPredictor", river.AdPredictor, needs=river.NEEDS),
    Peer("Vowpal Wabbit", vowpal.VowpalWabbit, needs=vowpal.NEEDS),
    Peer("LibAUC", libauc.PairwiseLoss, takes=("dense",), needs=libauc.NEEDS),
]

PEERS = {peer.name: peer for peer in (*_FULL, *_DIAGONAL, *_OTHERS)}
