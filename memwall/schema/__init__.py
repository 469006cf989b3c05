"""What the YAML files may hold, as pydantic models.

Imported only to check a user's own file and by the tests, which check every shipped file once:
the hot path trusts shipped files, and so never pays for pydantic.
"""
