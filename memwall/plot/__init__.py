"""Pictures: what to draw as values, laid out once, drawn as SVG or in a terminal."""
