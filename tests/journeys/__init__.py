"""What the service does for those in front of it, told from outside, each against the whole service.

A file `*.json` is a list of scenarios; `tenant.json` is the tenant that each has of its own:

    {"id", "title": a fact, "steps": [...], "policy"?: members put over the tenant's policy,
     "tools"?: [entries put over, or beside, the tenant's], "tenant"?: another document}

A step is one of these, and nothing else may stand in it:

    {"as", "method", "path", "body" | "raw", "headers"?, "status"?, "expect"?, "expect_headers"?,
     "save"?}                                      one request; `status` is 200, 201 or 202
    {"until": <request>, "timeout"?: seconds}      repeated until it holds (30)
    {"parallel": [<request>...] | <request>, "count"?, "statuses": {"201": 1}}
    {"apply": {"policy"?, "members"?: {name: {...}}, "groups"?: {name: ...}}}
                                                   the tenant is changed, and applied again
    {"control": {"name": tool, "mode"?, "preview_body"?}}   the far end is told how to behave
    {"ledger": {path: expected}, "save"?}          what the far end was asked for, and what it did
    {"until_ledger": {path: expected}, "timeout"?}
    {"mails": {path: expected}}                    what people were mailed: `alice.0.subject`, `.body`
    {"until_mails": {path: expected}, "timeout"?}
    {"either": [[steps...], ...]}                  one of the lists holds
    {"sleep": seconds}

`as` is a person or an agent of the tenant, `nobody`, or `stranger` or `stranger-ada`, an agent and
an admin of another one. A path is below `/api/v1`; after `@` it is the whole. Paths into a body have
dots: `results.0.id`, where `*` is any item, `#` how many there are, and nothing the body itself. What
is expected is a value, or operators, all of which hold: `$in $ne $gte $lte $len $exists $match
$contains $subset`. `${name.path}` is what was saved under that name; `${T}` is the tenant, `${W}`
the far end's host and port, and `{"$repeat": ["ab", 3]}` makes `ababab`.

`form.py` refuses whatever is not of this form, before anything is sent.
"""
