"""Printed numbers and what they should be: a claim is data, a verdict is computed.

quantity      a number with its dimension, and the units that people print
printed       a printed number or range, and the tolerance that its rounding implies
numbers       the numbers of a running text
expression    arithmetic read with a whitelist, never run as code; functions that it may call
operations    memwall's own reports, as an expression names them; tables: what no command reports
claim         a claim; schema and load read a file of them
library       what the names in a claim mean
comparison    whether two numbers are one
verdict       what a claim comes to, traced through the claims that it rests on; explain says how
docket        all that one run judges
directives    numbers inside Markdown; fixing puts them right
coverage      the numbers of a text that no claim covers
stub          a claim to fill in
"""
