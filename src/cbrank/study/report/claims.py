"""What the paper claims of its methods, sentence by sentence."""

from dataclasses import dataclass, replace
from typing import Literal

from cbrank.datasets import registry
from cbrank.datasets.entry import Table as Kind
from cbrank.study.times_file import PLAIN

_CBR = ("CBR_RS", "CBR_FIFO")
_DIAG = ("CBR-diag_FIFO",)
_PAIRWISE = ("OPAUC", "OAM_seq", "AdaOAM")
_WHERE_FASTER = ("spambase", "covtype", "acoustic")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the paper.

    Attributes
    ----------
    text : str
        The sentence, shortened.
    kind : {"benchmark", "high-dimensional"}
        The kind of data sets that it is about.
    measure : {"auc", "accuracy", "time"}
        By what methods are ahead; the faster is ahead by time.
    ahead, others : tuple of str
        The methods.
    best : bool
        Whether the best of those ahead is meant, not each of them.
    most : bool
        Whether it says "often" or "most", not "every".
    only, but : tuple of str
        The data sets it is about, if not all of the kind, or those it leaves out.
    factor : float
        How many times as long as the others those ahead may take.
    denied : bool
        Whether it says that those ahead are not so on every data set.
    """

    text: str
    kind: Kind
    measure: Literal["auc", "accuracy", "time"]
    ahead: tuple[str, ...]
    others: tuple[str, ...]
    best: bool = False
    most: bool = False
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    factor: float = 1.0
    denied: bool = False

    @property
    def datasets(self) -> list[str]:
        """The data sets that it is about."""
        return [d for d in self.only or registry.names(self.kind) if d not in self.but]

    @property
    def by_plain_loop(self) -> "Claim | None":
        """The same of CBR as a plain loop, if it is about the time of CBR and of others."""
        ahead, others = _plain(self.ahead), _plain(self.others)
        if self.measure != "time" or bool(ahead) is bool(others):
            return None
        return replace(self, ahead=ahead or self.ahead, others=others or self.others)


def _plain(methods: tuple[str, ...]) -> tuple[str, ...]:
    """Name the plain loops that stand for some methods, if there are such for all of them."""
    known = PLAIN | {"CBR_RS": PLAIN["CBR_FIFO"]}
    return tuple({known[m]: m for m in methods}) if {*methods} <= known.keys() else ()


def _scores(**claim: object) -> tuple[Claim, Claim]:
    auc, accuracy = (Claim(measure=m, **claim) for m in ("auc", "accuracy"))  # type: ignore[arg-type]
    return auc, accuracy


CLAIMS: tuple[Claim, ...] = (
    *_scores(
        text="Tables 3 and 4: the best CBR is first on every data set",
        kind="benchmark",
        ahead=_CBR,
        others=("Uni-Exp", *_PAIRWISE),
        best=True,
    ),
    *_scores(
        text='CBRs "often outperform the OAM_seq"',
        kind="benchmark",
        ahead=_CBR,
        others=("OAM_seq",),
        most=True,
    ),
    *_scores(
        text='CBRs outperform OPAUC, OAM_seq and AdaOAM "on most of the datasets"',
        kind="benchmark",
        ahead=_CBR,
        others=_PAIRWISE,
        most=True,
    ),
    *_scores(
        text='The improvement of OPAUC over OAM_seq "is not reliable"',
        kind="benchmark",
        ahead=("OPAUC",),
        others=("OAM_seq",),
        denied=True,
    ),
    *_scores(
        text='The improvement of AdaOAM over OAM_seq "is not reliable"',
        kind="benchmark",
        ahead=("AdaOAM",),
        others=("OAM_seq",),
        denied=True,
    ),
    *_scores(
        text='CBR_FIFO is "often slightly better than" CBR_RS',
        kind="benchmark",
        ahead=("CBR_FIFO",),
        others=("CBR_RS",),
        most=True,
    ),
    *_scores(
        text='CBRs are mostly ahead of Uni-Exp, fast "at the expense of" its scores',
        kind="benchmark",
        ahead=_CBR,
        others=("Uni-Exp",),
        most=True,
    ),
    Claim(
        text="CBRs are faster than OAM_seq",
        kind="benchmark",
        measure="time",
        ahead=_CBR,
        others=("OAM_seq",),
    ),
    Claim(
        text="CBRs are slower than AdaOAM, but for spambase, covtype, acoustic",
        kind="benchmark",
        measure="time",
        ahead=("AdaOAM",),
        others=_CBR,
        but=_WHERE_FASTER,
    ),
    Claim(
        text="CBRs are faster than AdaOAM on spambase, covtype, acoustic",
        kind="benchmark",
        measure="time",
        ahead=_CBR,
        others=("AdaOAM",),
        only=_WHERE_FASTER,
    ),
    Claim(
        text='CBR_FIFO is "often slightly" faster than CBR_RS',
        kind="benchmark",
        measure="time",
        ahead=("CBR_FIFO",),
        others=("CBR_RS",),
        most=True,
    ),
    Claim(
        text="Uni-Exp is the fastest",
        kind="benchmark",
        measure="time",
        ahead=("Uni-Exp",),
        others=(*_CBR, *_PAIRWISE),
    ),
    *_scores(
        text='CBR-diag "yields a better performance" than all others',
        kind="high-dimensional",
        ahead=_DIAG,
        others=("Uni-Exp", "OPAUCr", "OAM_seq"),
    ),
    *_scores(
        text="CBR-diag is better than OPAUCr",
        kind="high-dimensional",
        ahead=_DIAG,
        others=("OPAUCr",),
    ),
    *_scores(
        text="Uni-Exp is below CBR-diag",
        kind="high-dimensional",
        ahead=_DIAG,
        others=("Uni-Exp",),
    ),
    Claim(
        text="CBR-diag's time is \"competitive\" with OAM_seq's (at most twice as long)",
        kind="high-dimensional",
        measure="time",
        ahead=_DIAG,
        others=("OAM_seq",),
        factor=2.0,
    ),
    Claim(
        text="CBR-diag is slower than OPAUCr",
        kind="high-dimensional",
        measure="time",
        ahead=("OPAUCr",),
        others=_DIAG,
    ),
    Claim(
        text="Uni-Exp is the fastest",
        kind="high-dimensional",
        measure="time",
        ahead=("Uni-Exp",),
        others=(*_DIAG, "OPAUCr", "OAM_seq"),
    ),
)
