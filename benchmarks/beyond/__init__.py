"""Beyond the straight line: curves and trees beside boosted trees, on sets, tables and streams.

``make beyond`` runs it, ``python -m benchmarks.beyond --help`` tells its options.

* ``methods``: the methods, a class for each way to learn and a line for each method
* ``measuring``: the data, how they are read and split, and the measures
* ``report``: targets, tables, figures and the page that shows them
"""
