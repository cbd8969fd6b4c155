"""The paper's own figures: Tables 3 to 6, mean and standard deviation, digit for digit.

Two of them are printed with a blank ("0. 879", "0. 844": acoustic, CBR_RS), left out here.
"""

from dataclasses import dataclass
from typing import Literal

from cbrank.datasets.entry import Table as Kind
from cbrank.methods import names

Measure = Literal["auc", "accuracy"]

_TABLE_3 = """
glass      0.825 0.043  0.823 0.046  0.714 0.075  0.798 0.061  0.805 0.047  0.794 0.061
ionosphere 0.950 0.027  0.951 0.028  0.913 0.018  0.943 0.026  0.946 0.025  0.943 0.029
german     0.782 0.024  0.780 0.019  0.702 0.032  0.736 0.034  0.731 0.028  0.770 0.024
svmguide4  0.969 0.013  0.974 0.013  0.609 0.096  0.733 0.056  0.771 0.063  0.761 0.053
svmguide3  0.755 0.022  0.764 0.036  0.701 0.025  0.737 0.029  0.705 0.033  0.738 0.033
cod-rna    0.983 0.000  0.984 0.000  0.928 0.000  0.927 0.001  0.951 0.025  0.927 0.000
spambase   0.941 0.006  0.942 0.006  0.866 0.016  0.849 0.020  0.897 0.043  0.862 0.011
covtype    0.816 0.003  0.835 0.001  0.705 0.033  0.711 0.041  0.737 0.023  0.770 0.010
magic04    0.799 0.006  0.801 0.006  0.759 0.006  0.748 0.033  0.757 0.015  0.773 0.006
heart      0.908 0.019  0.909 0.021  0.733 0.039  0.788 0.054  0.806 0.059  0.799 0.079
australian 0.883 0.028  0.889 0.019  0.710 0.130  0.735 0.138  0.765 0.107  0.801 0.037
diabetes   0.700 0.021  0.707 0.033  0.633 0.036  0.667 0.041  0.648 0.040  0.675 0.034
acoustic   0.879 0.006  0.892 0.003  0.876 0.003  0.878 0.003  0.863 0.011  0.882 0.003
vehicle    0.846 0.031  0.846 0.034  0.711 0.053  0.764 0.073  0.761 0.078  0.792 0.049
segment    0.900 0.013  0.903 0.008  0.689 0.061  0.828 0.024  0.812 0.035  0.855 0.008
"""

_TABLE_4 = """
glass      0.813 0.044  0.811 0.049  0.732 0.060  0.795 0.046  0.788 0.040  0.783 0.047
ionosphere 0.946 0.028  0.946 0.022  0.902 0.028  0.936 0.018  0.943 0.017  0.938 0.018
german     0.780 0.022  0.787 0.019  0.741 0.027  0.754 0.022  0.751 0.028  0.770 0.030
svmguide4  0.951 0.014  0.956 0.012  0.829 0.021  0.843 0.024  0.839 0.022  0.848 0.020
svmguide3  0.784 0.015  0.793 0.016  0.784 0.019  0.777 0.024  0.780 0.020  0.777 0.024
cod-rna    0.948 0.002  0.949 0.000  0.887 0.001  0.887 0.001  0.910 0.019  0.887 0.001
spambase   0.899 0.009  0.898 0.009  0.818 0.019  0.795 0.022  0.849 0.053  0.809 0.014
covtype    0.746 0.005  0.766 0.003  0.672 0.018  0.674 0.021  0.685 0.016  0.709 0.008
magic04    0.769 0.011  0.771 0.006  0.734 0.007  0.731 0.015  0.736 0.013  0.752 0.008
heart      0.883 0.032  0.875 0.026  0.716 0.021  0.753 0.038  0.777 0.043  0.772 0.053
australian 0.841 0.023  0.842 0.022  0.711 0.056  0.725 0.070  0.742 0.064  0.768 0.036
diabetes   0.714 0.029  0.705 0.032  0.683 0.037  0.692 0.040  0.694 0.044  0.689 0.040
acoustic   0.844 0.005  0.850 0.003  0.840 0.005  0.839 0.002  0.832 0.005  0.841 0.003
vehicle    0.816 0.018  0.814 0.018  0.764 0.027  0.797 0.014  0.790 0.029  0.805 0.021
segment    0.838 0.015  0.836 0.008  0.691 0.031  0.768 0.027  0.755 0.024  0.796 0.014
"""

_TABLE_5 = """
farm-ads   0.961 0.004  0.942 0.006  0.951 0.004  0.952 0.005
rcv1       0.950 0.007  0.927 0.015  0.914 0.016  0.945 0.008
sector     0.927 0.009  0.846 0.019  0.908 0.013  0.857 0.008
real-sim   0.982 0.001  0.969 0.003  0.975 0.002  0.977 0.001
news20     0.956 0.003  0.939 0.005  0.942 0.006  0.944 0.005
reuters    0.993 0.001  0.985 0.003  0.988 0.002  0.989 0.003
"""

_TABLE_6 = """
farm-ads   0.897 0.007  0.872 0.012  0.885 0.008  0.882 0.007
rcv1       0.971 0.001  0.967 0.002  0.966 0.003  0.970 0.001
sector     0.850 0.012  0.772 0.011  0.831 0.015  0.776 0.008
real-sim   0.939 0.003  0.913 0.005  0.926 0.002  0.929 0.001
news20     0.918 0.005  0.895 0.005  0.902 0.009  0.907 0.006
reuters    0.971 0.004  0.953 0.006  0.961 0.006  0.961 0.006
"""


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """One of the paper's tables of results.

    Attributes
    ----------
    number : int
        The paper's number for it.
    kind : {"benchmark", "high-dimensional"}
        The kind of data sets that it is about.
    measure : {"auc", "accuracy"}
        What it compares; the accuracy is that at the optimal operating point.
    title : str
        Its caption.
    figures : dict
        Mean and standard deviation by data set and method.
    """

    number: int
    kind: Kind
    measure: Measure
    title: str
    figures: dict[tuple[str, str], tuple[float, float]]


def _figures(text: str, kind: Kind) -> dict[tuple[str, str], tuple[float, float]]:
    figures = {}
    for line in text.strip().splitlines():
        dataset, *numbers = line.split()
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        for method, (mean, deviation) in zip(names("paper", kind=kind), pairs, strict=True):
            figures[dataset, method] = float(mean), float(deviation)
    return figures


TABLES = (
    PaperTable(
        number=3,
        kind="benchmark",
        measure="auc",
        title="AUC on benchmark data sets",
        figures=_figures(_TABLE_3, "benchmark"),
    ),
    PaperTable(
        number=4,
        kind="benchmark",
        measure="accuracy",
        title="Accuracy at OPTROC on benchmark data sets",
        figures=_figures(_TABLE_4, "benchmark"),
    ),
    PaperTable(
        number=5,
        kind="high-dimensional",
        measure="auc",
        title="AUC on high-dimensional data sets",
        figures=_figures(_TABLE_5, "high-dimensional"),
    ),
    PaperTable(
        number=6,
        kind="high-dimensional",
        measure="accuracy",
        title="Accuracy at OPTROC on high-dimensional data sets",
        figures=_figures(_TABLE_6, "high-dimensional"),
    ),
)
