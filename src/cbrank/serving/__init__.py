"""A ranker that serves: scores over HTTP, labels that come later, and nothing lost."""
