"""Speed, memory and AUC of cbrank beside the libraries that one would use instead.

``make bench`` runs it, ``python -m benchmarks --help`` tells its options. It is not part of the
installed package.

* ``peers``: the learners that are compared, a class for each library and a line for each peer
* ``plain_loop``: the paper's algorithm as a naive compiled loop, the baseline of the fast sweeps
* ``workloads``: the data that they learn from, an entry each
* ``processes``: fresh processes with one thread, and how time and memory are taken in them
* ``interleaved``: peers that learn from the same stream in alternation, chunk by chunk
* ``measurements``: the list of all measurements; start-up, memory of a fit, cross-validation
* ``results_folder``: the files ``bench.json`` and ``results.csv``, and questions about them
* ``streams``: probabilities for streams in the order of time, a command of its own
* ``report``, ``figures``: targets, tables, figures and the page that shows them
"""
