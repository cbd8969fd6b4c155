"""What learns, without scikit-learn: arrays in and out, kernels inside.

* ``state``: all that a ranker has learned, one value that is replaced whole
* ``method``: how rows are learned, as the parameters of a ranker say it
* ``blocks``: rows up to the end of a block, which no interrupt parts, and the end of a block
* ``pool``: the learners with C "auto" and their mixture
* ``record``: how a ranker ranked rows before it learned from them
* ``served``: weights, intercept and probabilities by a state
* ``front``: rows that wait until it is decided what columns are, and how they become features
* ``tables``: the front of tables, what their columns are decided to be
* ``room``: models that memory cannot hold are refused
"""
