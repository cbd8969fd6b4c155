"""Speed and quality beside what users would pick instead, on the same rows in the same run.

* ``peers``: who is measured, a small file for each library
* ``workloads``, ``synthetic``: what they are measured on, an entry each
* ``plain``: the paper's algorithm as a naive compiled loop, the yardstick of the fast sweeps
* ``worker``, ``race``: a process for each peer, and how they take turns over a stream
* ``single``: what is measured alone: starts, memory of a fit, cross-validation
* ``machine``: the machine's rate of matrix products, and the operations that CBR needs
* ``steps``, ``record``: the list of all measurements, and the files ``results.csv``, ``bench.json``
* ``claims``, ``tables``, ``figures``, ``report``: what was promised and what was reached
"""
