"""Tables in Markdown."""


def table(head, rows):
    line = "| " + " | ".join(head) + " |"
    rule = "|" + "---|" + "---:|" * (len(head) - 1)
    return "\n".join([line, rule, *("| " + " | ".join(row) + " |" for row in rows)])
