"""Reports turned into text, JSON, CSV and Markdown: functions of a finished report."""
