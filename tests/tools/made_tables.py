"""Made-up tables with words, gaps and curves, of which each half has words of its own."""

import numpy as np
import pandas as pd


def people(rows, seed=0):
    """Return a frame and labels: about one in six is positive."""
    random = np.random.default_rng(seed)
    age = random.integers(17, 80, rows).astype(float)
    gain = np.where(random.random(rows) < 0.9, 0.0, random.exponential(5000.0, rows))
    hours = random.normal(40.0, 12.0, rows).round()
    job = random.choice(["clerk", "sales", "exec", "tech", "farm", "?"], rows)
    early = np.arange(rows) < rows // 2
    land = np.where(
        early, random.choice(["no", "se", "dk"], rows), random.choice(["no", "fr", "pt"], rows)
    )
    score = (hours - 40.0) / 15.0 - ((age - 50.0) / 15.0) ** 2 + 2.0 * (gain > 3000.0)
    score += 1.2 * np.isin(job, ["exec"]) + 1.2 * np.isin(land, ["se", "fr"])
    score -= 1.2 * np.isin(land, ["dk", "pt"])
    labels = (score + random.logistic(size=rows) > 1.5).astype(int)
    age[random.random(rows) < 0.05] = np.nan
    frame = {"age": age, "gain": gain, "hours": hours, "job": job, "land": land}
    return pd.DataFrame(frame).astype({"job": object, "land": object}), labels
