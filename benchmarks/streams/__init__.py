"""Real streams in the order of time: who ranks the next rows best, before learning from them.

``make streams`` runs it, ``python -m benchmarks.streams --help`` tells its options.

* ``learners``: the methods, a class for each library and a line for each method
* ``measuring``: the streams, how they are read, test-then-learn, and the measures
* ``report``: the results folder, its tables, figures and the page that shows them
"""
