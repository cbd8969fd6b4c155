"""The paper's experiments, as section 4.2 describes them.

What is compared is registered in `cbrank.methods`.

* ``settings``: seed, grid, protocol and sizes, which together with the code decide every number
* ``splits``, ``selection``, ``protocol``, ``measures``: one run: its rows, model selection, the
  final fit, its measures
* ``sketch_grid``, ``ceiling``: OPAUCr for all steps at once; batch logistic regression
* ``tasks``, ``runner``: the list of all runs, and a study's folder that fills as they end
* ``results``, ``curves``, ``record``: the files ``results.csv``, ``curves.csv``, ``study.json``
* ``report``: tables, figures and the page made from these files
"""
