"""The paper's experiments, as section 4.2 describes them.

* ``settings``: what decides the numbers, the seeds among it
* ``splits``, ``protocol``, ``measures``: a run: its rows, model selection and final fit, scores
* ``sketch_grid``, ``ceiling``: OPAUCr for all steps at once; batch logistic regression
* ``tasks``, ``runner``: the list of all runs, and how they are spread over processes
* ``results``, ``curves``, ``record``: the files ``results.csv``, ``curves.csv``, ``study.json``
* ``report``: tables, figures and the page made from these files
"""
