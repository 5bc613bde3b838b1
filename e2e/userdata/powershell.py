"""Parses PowerShell bodies with tree-sitter. Arguments: files. Ends with the number of bad ones."""
import re
import sys

import tree_sitter
import tree_sitter_powershell

parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
bad = 0
for name in sys.argv[1:]:
    text = open(name, encoding="utf-8").read()
    body = re.search(r"<powershell>\n(.*)</powershell>", text, re.S).group(1)
    # The grammar knows no parameter names with digits; PowerShell does.
    tree = parser.parse(body.replace("-Base64ClusterCA", "-BaseClusterCA").encode())
    bad += tree.root_node.has_error
    print(name.rsplit("/", 1)[-1], "error node" if tree.root_node.has_error else "ok")
sys.exit(bad)
