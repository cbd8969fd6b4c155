"""How fast ``cbrank serve`` is, beside an endpoint that only echoes, and whether it stays so.

``make serving`` runs it, ``python -m benchmarks.serving --help`` tells its options.

* ``servers``: models to serve, the server and the echo, each in a process of its own
* ``echo``: the endpoint that only echoes, on the same stack
* ``measuring``: requests of a kind, their rates, and the ratios
* ``traffic``: a file as requests, with labels that follow; ``sending`` sends them
* ``load``: a file as traffic for any server, ``python -m benchmarks.serving.load --help``
* ``soak``: mixed load for minutes, and whether memory, latency and store stay flat
"""
