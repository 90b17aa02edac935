"""The review: two kernels side by side in a terminal.

`model` holds the state and its transitions and knows no Textual; `marks`, `document`,
`listing` and `detail` say what a state looks like, as pieces of text with an `Ink`.
`app`, `panes` and `dialogs` paint that and turn keys into transitions.  Every key stands
in `keys.KEYS` and nowhere else.
"""
