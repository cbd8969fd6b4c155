"""Speed, memory and AUC of cbrank beside the libraries that one would use instead.

``make bench`` runs it, ``python -m benchmarks --help`` tells its options. It is not part of the
installed package.

* ``peers``: the learners that are compared, a class for each library and a line for each peer
* ``plain_loop``: the paper's algorithm as a naive compiled loop, as a peer
* ``workloads``: the data that they learn from, an entry each
* ``processes``: fresh processes with one thread, and how time and memory are taken in them
* ``limits``, ``roofline``: how fast the machine multiplies, loads and stores, and what that allows
* ``interleaved``: peers that learn from the same stream in alternation, chunk by chunk
* ``single_rows``: calls with one row
* ``measurements``: the list of all measurements; start-up, memory of a fit, cross-validation
* ``in_brief``: a few numbers of the commands ``streams``, ``beyond`` and ``serving``, which are
  folders here
* ``results_folder``: the files ``bench.json`` and ``results.csv``, and questions about them
* ``targets``, ``history``: what is aimed at, and what was measured before
* ``report``, ``tables``, ``figures``: the page and what it shows
"""
