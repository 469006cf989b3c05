"""One page that needs nothing else: a report in words, pictures and tables, with sliders computed in it."""
