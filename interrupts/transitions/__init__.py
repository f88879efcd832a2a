"""Functions on a locked run (``interrupts.work.Work``): the only writers of a state."""
