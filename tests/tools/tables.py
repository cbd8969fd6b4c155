"""A small table and a model of it, made in a folder as a user would have them."""

import json

from commands import outcome_of

from cbrank import CBRanker
from cbrank.cli import main
from cbrank.streams import Columns, open_stream
from cbrank.training import Model

TRAIN = """row,age,income,clicked
a,2,4,no
b,4,0,yes
c,6,8,no
d,8,4,yes
"""
TEST = """income,clicked,row,age
1,yes,e,5
6,no,f,3
2,no,"g,2",4
4,yes,h,1
0,yes,i,9
"""


def run(*arguments):
    """Run a command; return how it ended."""
    return outcome_of(main, *arguments)


def objects(result):
    """Return the JSON objects on the lines of what was printed."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def make(folder, ranker=None, scaler=None, name="clicks.model", text=TRAIN, **columns):
    """Write a table and a model that learned from it; return the model's path."""
    (folder / "train.csv").write_text(text)
    (folder / "test.csv").write_text(TEST)
    roles = Columns(**{"label": "clicked", "id": "row"} | columns)
    model = Model(ranker or CBRanker(C=0.5, average=False, random_state=0), scaler, roles)
    for chunk in open_stream(folder / "train.csv", columns=roles):
        model.learn(chunk)
    model.write(folder / name)
    return folder / name


def make_svmlight(folder, ranker=None, scaler=None, name="text.model"):
    (folder / "train.svm").write_text("-1 1:2 2:4\n+1 1:4\n-1 1:6 2:8\n+1 1:8 2:4\n")
    model = Model(ranker or CBRanker(C=0.5, covariance="diagonal"), scaler, Columns())
    for chunk in open_stream(folder / "train.svm", columns=model.columns):
        model.learn(chunk)
    model.write(folder / name)
    return folder / name
