"""The tables and figures of an evaluation, which text, HTML page and notebook show."""
