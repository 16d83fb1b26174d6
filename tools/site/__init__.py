"""The site: what `make docs` builds from the pages, the docstrings and the programs that draw pages.

`python -m tools.site` stages the pages in build/site-src, where they lie as in the repository, so that their links
hold; mkdocs makes build/site of them.  Nothing is loaded from elsewhere, neither then nor by a reader's browser.
"""
