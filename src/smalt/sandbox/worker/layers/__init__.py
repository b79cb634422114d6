"""The layers between a program and the machine, each in a file of its own.

`namespaces`, `root`, `privileges` and `cgroups` are set up once per server, `filters` and `landlock` once per
server and tightened once more in every child. Nothing here knows what runs inside.
"""
