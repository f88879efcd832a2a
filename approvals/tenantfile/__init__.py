"""The tenant file: read strictly, checked as a whole, and applied as a whole.

`reading` makes documents of the text, `checking` finds every fault before anything is changed,
`applying` makes each tenant what its document says, `credentials` gives out what was made.
"""
